-- +goose Up
-- A number of ours: whose its strangers are, and the lock under which their texts are counted.
CREATE TABLE numbers (
  our_number text PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts,
  dropped bigint NOT NULL DEFAULT 0   -- texts of strangers that were beyond the limits
);

-- Trust of a message is trusted, pending, promoted (evidence that decides nothing) or forgotten (its words are erased; the
-- row stays, since the provider's id is known for ever).
ALTER TABLE messages ADD COLUMN sender_name text NOT NULL DEFAULT '';   -- what a stranger calls itself, cleaned
ALTER TABLE messages ADD COLUMN promoted_at timestamptz;
CREATE INDEX messages_pending ON messages (our_number, received_at) WHERE trust = 'pending';

-- A code and the one text that carries it.
CREATE TABLE pairings (
  id uuid PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts,
  address text NOT NULL,
  our_number text NOT NULL,
  code text UNIQUE,                    -- null once it is used or over
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  prompt text NOT NULL,                -- queued, sending, accepted, rejected or unknown
  sent_at timestamptz,
  used_at timestamptz,
  person_id uuid REFERENCES people     -- whom it made
);
CREATE INDEX pairings_number ON pairings (our_number, created_at);
CREATE INDEX pairings_account ON pairings (account_id, created_at);
CREATE INDEX pairings_queued ON pairings (created_at) WHERE prompt = 'queued';

-- Strangers who want no text. Of a person's address the row of the address says so.
CREATE TABLE stranger_opt_outs (
  address text NOT NULL,
  our_number text NOT NULL,
  opted_out_at timestamptz NOT NULL,
  PRIMARY KEY (address, our_number)
);

-- Codes that were none, within the hour that began at since.
CREATE TABLE code_attempts (
  account_id text PRIMARY KEY REFERENCES accounts,
  since timestamptz NOT NULL,
  wrong int NOT NULL
);

CREATE TABLE unbindings (
  account_id text NOT NULL REFERENCES accounts,
  person_id uuid NOT NULL REFERENCES people,
  address text NOT NULL,
  our_number text NOT NULL,
  why text NOT NULL,
  at timestamptz NOT NULL
);
CREATE INDEX unbindings_account ON unbindings (account_id, at);

-- +goose Down
DROP TABLE unbindings, code_attempts, stranger_opt_outs, pairings;
DROP INDEX messages_pending;
ALTER TABLE messages DROP COLUMN promoted_at, DROP COLUMN sender_name;
DROP TABLE numbers;
