-- +goose Up
ALTER TABLE addresses ADD COLUMN opted_out_at timestamptz;   -- no text goes there while it is set
ALTER TABLE messages ADD COLUMN opt_out text NOT NULL DEFAULT '';   -- the provider's own word: STOP, START or HELP

-- The furthest that callbacks have said of a text; a rank never falls.
ALTER TABLE texts ADD COLUMN delivery text NOT NULL DEFAULT '';
ALTER TABLE texts ADD COLUMN delivery_rank int NOT NULL DEFAULT 0;

-- The provider's id of every part of a text, which callbacks and quoted replies name, and what callbacks have said of it.
CREATE TABLE text_parts (
  provider_id text PRIMARY KEY,
  text_id uuid NOT NULL REFERENCES texts,
  part int NOT NULL,
  delivery text NOT NULL DEFAULT '',
  delivery_rank int NOT NULL DEFAULT 0
);
CREATE INDEX text_parts_text ON text_parts (text_id);

-- The page of an offer with a long body is found by the hash of a token that stands in the text alone.
ALTER TABLE offers ADD COLUMN token_sha256 bytea UNIQUE;

-- When an offer left the screen without an end and went back in line, behind the others: the person picked another, or it
-- had gone unanswered and gave way.
ALTER TABLE offers ADD COLUMN left_at timestamptz;
CREATE INDEX operations_settling_person ON operations (person_id) WHERE state = 'settling';

-- +goose Down
DROP INDEX operations_settling_person;
ALTER TABLE offers DROP COLUMN left_at;
ALTER TABLE offers DROP COLUMN token_sha256;
DROP TABLE text_parts;
ALTER TABLE texts DROP COLUMN delivery, DROP COLUMN delivery_rank;
ALTER TABLE messages DROP COLUMN opt_out;
ALTER TABLE addresses DROP COLUMN opted_out_at;
