-- +goose Up
-- A number of ours: whose its strangers are, and the lock under which their texts are counted.
CREATE TABLE numbers (
  our_number TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts,
  dropped INTEGER NOT NULL DEFAULT 0   -- texts of strangers that were beyond the limits
);

-- Trust of a message is trusted, pending, promoted (evidence that decides nothing) or forgotten (its words are erased; the
-- row stays, since the provider's id is known for ever).
ALTER TABLE messages ADD COLUMN sender_name TEXT NOT NULL DEFAULT '';   -- what a stranger calls itself, cleaned
ALTER TABLE messages ADD COLUMN promoted_at INTEGER;
CREATE INDEX messages_pending ON messages (our_number, received_at) WHERE trust = 'pending';

-- A code and the one text that carries it.
CREATE TABLE pairings (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts,
  address TEXT NOT NULL,
  our_number TEXT NOT NULL,
  code TEXT UNIQUE,                    -- null once it is used or over
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  prompt TEXT NOT NULL,                -- queued, sending, accepted, rejected or unknown
  sent_at INTEGER,
  used_at INTEGER,
  person_id TEXT REFERENCES people     -- whom it made
);
CREATE INDEX pairings_number ON pairings (our_number, created_at);
CREATE INDEX pairings_account ON pairings (account_id, created_at);
CREATE INDEX pairings_queued ON pairings (created_at) WHERE prompt = 'queued';

-- Strangers who want no text. Of a person's address the row of the address says so.
CREATE TABLE stranger_opt_outs (
  address TEXT NOT NULL,
  our_number TEXT NOT NULL,
  opted_out_at INTEGER NOT NULL,
  PRIMARY KEY (address, our_number)
);

-- Codes that were none, within the hour that began at since.
CREATE TABLE code_attempts (
  account_id TEXT PRIMARY KEY REFERENCES accounts,
  since INTEGER NOT NULL,
  wrong INTEGER NOT NULL
);

CREATE TABLE unbindings (
  account_id TEXT NOT NULL REFERENCES accounts,
  person_id TEXT NOT NULL REFERENCES people,
  address TEXT NOT NULL,
  our_number TEXT NOT NULL,
  why TEXT NOT NULL,
  at INTEGER NOT NULL
);
CREATE INDEX unbindings_account ON unbindings (account_id, at);

-- +goose Down
DROP TABLE unbindings;
DROP TABLE code_attempts;
DROP TABLE stranger_opt_outs;
DROP TABLE pairings;
DROP INDEX messages_pending;
ALTER TABLE messages DROP COLUMN promoted_at;
ALTER TABLE messages DROP COLUMN sender_name;
DROP TABLE numbers;
