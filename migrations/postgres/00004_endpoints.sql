-- +goose Up
-- Where an account's events are posted. The feed itself is the queue: an endpoint holds its place in it, so that an
-- event needs no row of its own for each endpoint and can neither be lost between two tables nor come out of order.
CREATE TABLE endpoints (
  id uuid PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts,
  url text NOT NULL,
  secret text NOT NULL,            -- as it is: signing needs it. Whoever reads this column can sign events.
  created_at timestamptz NOT NULL,
  disabled_at timestamptz,
  position_xid xid8 NOT NULL,      -- the last event that is done with, delivered or dead
  position_row bigint NOT NULL,
  seq bigint NOT NULL DEFAULT 0,   -- its number; the event behind it has the next
  attempts int NOT NULL DEFAULT 0, -- failed tries of the event behind it
  next_try timestamptz,
  last_status int NOT NULL DEFAULT 0,
  last_failure text NOT NULL DEFAULT '',
  answered_at timestamptz,         -- the last 2xx
  claimed_at timestamptz,
  leased_until timestamptz,
  ticket bigint NOT NULL DEFAULT 0 -- of the newest claim: who comes with an older one records nothing
);
CREATE INDEX endpoints_account ON endpoints (account_id, created_at);

-- What an endpoint did not take within the schedule. While dead_at is null the letter is being tried again.
CREATE TABLE dead_letters (
  id uuid PRIMARY KEY,
  endpoint_id uuid NOT NULL REFERENCES endpoints ON DELETE CASCADE,
  account_id text NOT NULL REFERENCES accounts,
  event_row bigint NOT NULL REFERENCES events,
  event_id uuid NOT NULL,
  seq bigint NOT NULL,
  attempts int NOT NULL,
  next_try timestamptz,
  last_status int NOT NULL,
  last_failure text NOT NULL,
  dead_at timestamptz,
  UNIQUE (endpoint_id, seq)
);
CREATE INDEX dead_letters_account ON dead_letters (account_id, endpoint_id, seq);
CREATE INDEX dead_letters_due ON dead_letters (endpoint_id, next_try) WHERE next_try IS NOT NULL;

-- +goose Down
DROP TABLE dead_letters, endpoints;
