-- +goose Up
-- A derived run ends with the run that it comes from; null is one hour after it was made.
ALTER TABLE runs ADD COLUMN expires_at timestamptz;
CREATE INDEX runs_root ON runs (root_id);

-- What an approved operation set up to run later carries its creator's authority and taint.
CREATE TABLE schedules (
  account_id text NOT NULL REFERENCES accounts,
  person_id uuid NOT NULL REFERENCES people,
  name text NOT NULL,
  operation_id uuid NOT NULL REFERENCES operations,
  tier text NOT NULL,
  tainted boolean NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (account_id, person_id, name)
);

-- +goose Down
DROP TABLE schedules;
DROP INDEX runs_root;
ALTER TABLE runs DROP COLUMN expires_at;
