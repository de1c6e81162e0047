-- +goose Up
-- Where an account's events are posted. The feed itself is the queue: an endpoint holds its place in it, so that an
-- event needs no row of its own for each endpoint and can neither be lost between two tables nor come out of order.
CREATE TABLE endpoints (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts,
  url TEXT NOT NULL,
  secret TEXT NOT NULL,                -- as it is: signing needs it. Whoever reads this column can sign events.
  created_at INTEGER NOT NULL,
  disabled_at INTEGER,
  position_row INTEGER NOT NULL,       -- the last event that is done with, delivered or dead
  seq INTEGER NOT NULL DEFAULT 0,      -- its number; the event behind it has the next
  attempts INTEGER NOT NULL DEFAULT 0, -- failed tries of the event behind it
  next_try INTEGER,
  last_status INTEGER NOT NULL DEFAULT 0,
  last_failure TEXT NOT NULL DEFAULT '',
  answered_at INTEGER,                 -- the last 2xx
  claimed_at INTEGER,
  leased_until INTEGER,
  ticket INTEGER NOT NULL DEFAULT 0    -- of the newest claim: who comes with an older one records nothing
);
CREATE INDEX endpoints_account ON endpoints (account_id, created_at);

-- What an endpoint did not take within the schedule. While dead_at is null the letter is being tried again.
CREATE TABLE dead_letters (
  id TEXT PRIMARY KEY,
  endpoint_id TEXT NOT NULL REFERENCES endpoints ON DELETE CASCADE,
  account_id TEXT NOT NULL REFERENCES accounts,
  event_row INTEGER NOT NULL REFERENCES events,
  event_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  next_try INTEGER,
  last_status INTEGER NOT NULL,
  last_failure TEXT NOT NULL,
  dead_at INTEGER,
  UNIQUE (endpoint_id, seq)
);
CREATE INDEX dead_letters_account ON dead_letters (account_id, endpoint_id, seq);
CREATE INDEX dead_letters_due ON dead_letters (endpoint_id, next_try) WHERE next_try IS NOT NULL;

-- +goose Down
DROP TABLE dead_letters;
DROP TABLE endpoints;
