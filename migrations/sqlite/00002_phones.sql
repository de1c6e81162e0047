-- +goose Up
ALTER TABLE addresses ADD COLUMN opted_out_at INTEGER;   -- no text goes there while it is set
ALTER TABLE messages ADD COLUMN opt_out TEXT NOT NULL DEFAULT '';   -- the provider's own word: STOP, START or HELP

-- The furthest that callbacks have said of a text; a rank never falls.
ALTER TABLE texts ADD COLUMN delivery TEXT NOT NULL DEFAULT '';
ALTER TABLE texts ADD COLUMN delivery_rank INTEGER NOT NULL DEFAULT 0;

-- The provider's id of every part of a text, which callbacks and quoted replies name, and what callbacks have said of it.
CREATE TABLE text_parts (
  provider_id TEXT PRIMARY KEY,
  text_id TEXT NOT NULL REFERENCES texts,
  part INTEGER NOT NULL,
  delivery TEXT NOT NULL DEFAULT '',
  delivery_rank INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX text_parts_text ON text_parts (text_id);

-- The page of an offer with a long body is found by the hash of a token that stands in the text alone.
ALTER TABLE offers ADD COLUMN token_sha256 BLOB;
CREATE UNIQUE INDEX offers_token ON offers (token_sha256) WHERE token_sha256 IS NOT NULL;

-- When an offer left the screen without an end and went back in line, behind the others: the person picked another, or it
-- had gone unanswered and gave way.
ALTER TABLE offers ADD COLUMN left_at INTEGER;
CREATE INDEX operations_settling_person ON operations (person_id) WHERE state = 'settling';

-- +goose Down
DROP INDEX operations_settling_person;
ALTER TABLE offers DROP COLUMN left_at;
DROP INDEX offers_token;
ALTER TABLE offers DROP COLUMN token_sha256;
DROP TABLE text_parts;
ALTER TABLE texts DROP COLUMN delivery;
ALTER TABLE texts DROP COLUMN delivery_rank;
ALTER TABLE messages DROP COLUMN opt_out;
ALTER TABLE addresses DROP COLUMN opted_out_at;
