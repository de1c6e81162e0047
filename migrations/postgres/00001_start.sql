-- +goose Up
-- The one clock. Decisions compare against it after the person's lock is held, never against now(), which is the
-- start of the transaction.
CREATE FUNCTION cs_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()';

CREATE TABLE accounts (
  id text PRIMARY KEY,
  asking_is_approving boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
INSERT INTO accounts (id) VALUES ('default');

CREATE TABLE keys (
  id uuid PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts,
  name text NOT NULL,
  scope text NOT NULL,
  hash bytea NOT NULL UNIQUE,
  created_at timestamptz NOT NULL,
  revoked_at timestamptz,
  polled_at timestamptz
);
CREATE INDEX keys_account ON keys (account_id, created_at);

CREATE TABLE people (
  id uuid PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts,
  name text NOT NULL,
  tier text NOT NULL,
  state text NOT NULL,
  created_at timestamptz NOT NULL
);
CREATE INDEX people_account ON people (account_id, created_at);

-- (address, our number) finds one person across all accounts.
CREATE TABLE addresses (
  address text NOT NULL,
  our_number text NOT NULL,
  person_id uuid NOT NULL REFERENCES people,
  account_id text NOT NULL REFERENCES accounts,
  bound_at timestamptz NOT NULL,
  PRIMARY KEY (address, our_number)
);
CREATE INDEX addresses_person ON addresses (person_id);

CREATE TABLE own_addresses (
  account_id text NOT NULL REFERENCES accounts,
  address text NOT NULL,
  PRIMARY KEY (account_id, address)
);

-- One row per person, and the one lock: the last numbers given out and the ledger's head.
CREATE TABLE threads (
  person_id uuid PRIMARY KEY REFERENCES people,
  account_id text NOT NULL,
  messages bigint NOT NULL DEFAULT 0,
  texts bigint NOT NULL DEFAULT 0,
  ledger bigint NOT NULL DEFAULT 0,
  head bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex')
) WITH (fillfactor = 50);

CREATE TABLE messages (
  id uuid PRIMARY KEY,
  account_id text NOT NULL,
  person_id uuid REFERENCES people,
  number bigint,
  provider text NOT NULL,
  provider_id text NOT NULL,
  address text NOT NULL,
  our_number text NOT NULL,
  text text NOT NULL,
  raw bytea NOT NULL,
  lossy boolean NOT NULL,
  quoted text NOT NULL DEFAULT '',
  trust text NOT NULL,
  run_id uuid,
  received_at timestamptz NOT NULL,
  decided_at timestamptz,
  reading jsonb,
  UNIQUE (provider, provider_id),
  UNIQUE (person_id, number)
);
CREATE INDEX messages_undecided ON messages (received_at) WHERE decided_at IS NULL AND trust = 'trusted';

CREATE TABLE runs (
  id uuid PRIMARY KEY,
  account_id text NOT NULL,
  person_id uuid NOT NULL REFERENCES people,
  tier text NOT NULL,
  cause jsonb NOT NULL,
  message_id uuid UNIQUE,
  parent_id uuid,
  root_id uuid NOT NULL,
  tainted boolean NOT NULL,
  interactive boolean NOT NULL,
  created_at timestamptz NOT NULL
);

CREATE TABLE operations (
  id uuid PRIMARY KEY,
  account_id text NOT NULL,
  run_id uuid NOT NULL REFERENCES runs,
  person_id uuid NOT NULL REFERENCES people,
  kind text NOT NULL,
  tool text NOT NULL,
  args bytea NOT NULL,
  args_sha256 bytea NOT NULL,
  decision text NOT NULL,
  reason text NOT NULL,
  rule text NOT NULL,
  detail text NOT NULL,
  tier text NOT NULL,
  capability text NOT NULL,
  state text NOT NULL,
  created_at timestamptz NOT NULL,
  settle_until timestamptz,
  approved_at timestamptz,
  noticed_at timestamptz,
  begun_at timestamptz,
  begun_by text NOT NULL DEFAULT '',
  result text,                   -- as it was written
  closed_at timestamptz
);
CREATE INDEX operations_settling ON operations (settle_until) WHERE state = 'settling';
CREATE INDEX operations_approved ON operations (approved_at) WHERE state = 'approved';

CREATE TABLE offers (
  id uuid PRIMARY KEY,
  account_id text NOT NULL,
  operation_id uuid NOT NULL UNIQUE REFERENCES operations,
  person_id uuid NOT NULL REFERENCES people,
  run_id uuid NOT NULL,
  root_run_id uuid NOT NULL,
  address text NOT NULL,
  our_number text NOT NULL,
  state text NOT NULL,
  present text NOT NULL,
  tool text NOT NULL,
  capability text NOT NULL,
  args_sha256 bytea NOT NULL,
  binding_sha256 bytea NOT NULL,
  label text NOT NULL,
  shown_text text NOT NULL,
  ask_line text NOT NULL,
  policy_version text NOT NULL,
  ttl_us bigint NOT NULL,
  settle_us bigint NOT NULL,
  supersedes uuid,
  created_at timestamptz NOT NULL,
  sent_at timestamptz,           -- when it may have reached a screen
  shown_at timestamptz,
  asked_at timestamptz,          -- the newest accepted text about it
  reasks int NOT NULL DEFAULT 0,
  expires_at timestamptz NOT NULL,
  closed_at timestamptz,
  closed_by jsonb,
  consumed_by uuid UNIQUE REFERENCES messages   -- one message approves at most one offer, ever
);
CREATE INDEX offers_live ON offers (person_id) WHERE state IN ('sending', 'open');
CREATE INDEX offers_queue ON offers (person_id, created_at) WHERE state = 'queued';
CREATE INDEX offers_due ON offers (expires_at) WHERE state IN ('queued', 'sending', 'open');
CREATE INDEX offers_closed ON offers (person_id, closed_at) WHERE sent_at IS NOT NULL;
CREATE INDEX offers_account ON offers (account_id, created_at DESC);

CREATE TABLE texts (
  id uuid PRIMARY KEY,
  account_id text NOT NULL,
  person_id uuid NOT NULL REFERENCES people,
  number bigint NOT NULL,
  kind text NOT NULL,
  offer_id uuid REFERENCES offers,
  address text NOT NULL,
  our_number text NOT NULL,
  body text NOT NULL,
  state text NOT NULL,
  provider_id text NOT NULL DEFAULT '',
  code int NOT NULL DEFAULT 0,
  queued_at timestamptz NOT NULL,
  sending_at timestamptz,
  ended_at timestamptz,
  resent boolean NOT NULL DEFAULT false,
  UNIQUE (person_id, number)
);
CREATE INDEX texts_queued ON texts (queued_at) WHERE state = 'queued';
CREATE INDEX texts_sending ON texts (person_id) WHERE state = 'sending';
CREATE INDEX texts_doubt ON texts (sending_at) WHERE state IN ('sending', 'unknown') AND NOT resent;

CREATE TABLE ledger (
  account_id text NOT NULL,
  person_id uuid NOT NULL REFERENCES people,
  number bigint NOT NULL,
  at timestamptz NOT NULL,
  kind text NOT NULL,
  operation_id uuid NOT NULL REFERENCES operations,
  body bytea NOT NULL,
  prev bytea NOT NULL,
  hash bytea NOT NULL,
  PRIMARY KEY (person_id, number)
);
CREATE UNIQUE INDEX ledger_consumed_once ON ledger (operation_id) WHERE kind = 'consumed';
CREATE UNIQUE INDEX ledger_begun_once ON ledger (operation_id) WHERE kind = 'begun';

-- Read in the order (xid, row): a reader stops below the oldest transaction that is still running, so that nothing
-- can commit behind a position that was handed out.
CREATE TABLE events (
  row bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
  id uuid NOT NULL,
  account_id text NOT NULL,
  type text NOT NULL,
  at timestamptz NOT NULL,
  data text NOT NULL             -- as it was written: jsonb would reorder the arguments
);
CREATE INDEX events_account ON events (account_id, xid, row);

CREATE TABLE idempotency (
  account_id text NOT NULL,
  call text NOT NULL,
  key text NOT NULL,
  body_sha256 bytea NOT NULL,
  operation_id uuid NOT NULL,
  PRIMARY KEY (account_id, call, key)
);

-- +goose Down
DROP TABLE idempotency, events, ledger, texts, offers, operations, runs, messages, threads, own_addresses, addresses, people, keys, accounts;
DROP FUNCTION cs_now;
