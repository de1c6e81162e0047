-- +goose Up
-- A derived run ends with the run that it comes from; null is one hour after it was made.
ALTER TABLE runs ADD COLUMN expires_at INTEGER;
CREATE INDEX runs_root ON runs (root_id);

-- What an approved operation set up to run later carries its creator's authority and taint.
CREATE TABLE schedules (
  account_id TEXT NOT NULL REFERENCES accounts,
  person_id TEXT NOT NULL REFERENCES people,
  name TEXT NOT NULL,
  operation_id TEXT NOT NULL REFERENCES operations,
  tier TEXT NOT NULL,
  tainted INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, person_id, name)
);

-- +goose Down
DROP TABLE schedules;
DROP INDEX runs_root;
ALTER TABLE runs DROP COLUMN expires_at;
