-- +goose Up
-- Times are integer microseconds since 1970 UTC, read from the store's clock after BEGIN IMMEDIATE holds the lock.

CREATE TABLE accounts (
  id TEXT PRIMARY KEY,
  asking_is_approving INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL DEFAULT 0
);
INSERT INTO accounts (id) VALUES ('default');

CREATE TABLE keys (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts,
  name TEXT NOT NULL,
  scope TEXT NOT NULL,
  hash BLOB NOT NULL UNIQUE,
  created_at INTEGER NOT NULL,
  revoked_at INTEGER,
  polled_at INTEGER
);
CREATE INDEX keys_account ON keys (account_id, created_at);

CREATE TABLE people (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts,
  name TEXT NOT NULL,
  tier TEXT NOT NULL,
  state TEXT NOT NULL,
  created_at INTEGER NOT NULL
);
CREATE INDEX people_account ON people (account_id, created_at);

-- (address, our number) finds one person across all accounts.
CREATE TABLE addresses (
  address TEXT NOT NULL,
  our_number TEXT NOT NULL,
  person_id TEXT NOT NULL REFERENCES people,
  account_id TEXT NOT NULL REFERENCES accounts,
  bound_at INTEGER NOT NULL,
  PRIMARY KEY (address, our_number)
);
CREATE INDEX addresses_person ON addresses (person_id);

CREATE TABLE own_addresses (
  account_id TEXT NOT NULL REFERENCES accounts,
  address TEXT NOT NULL,
  PRIMARY KEY (account_id, address)
);

-- One row per person, and the one lock: the last numbers given out and the ledger's head.
CREATE TABLE threads (
  person_id TEXT PRIMARY KEY REFERENCES people,
  account_id TEXT NOT NULL,
  messages INTEGER NOT NULL DEFAULT 0,
  texts INTEGER NOT NULL DEFAULT 0,
  ledger INTEGER NOT NULL DEFAULT 0,
  head BLOB NOT NULL DEFAULT (zeroblob(32))
);

CREATE TABLE messages (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  person_id TEXT REFERENCES people,
  number INTEGER,
  provider TEXT NOT NULL,
  provider_id TEXT NOT NULL,
  address TEXT NOT NULL,
  our_number TEXT NOT NULL,
  text TEXT NOT NULL,
  raw BLOB NOT NULL,
  lossy INTEGER NOT NULL,
  quoted TEXT NOT NULL DEFAULT '',
  trust TEXT NOT NULL,
  run_id TEXT,
  received_at INTEGER NOT NULL,
  decided_at INTEGER,
  reading TEXT,
  UNIQUE (provider, provider_id),
  UNIQUE (person_id, number)
);
CREATE INDEX messages_undecided ON messages (received_at) WHERE decided_at IS NULL AND trust = 'trusted';

CREATE TABLE runs (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  person_id TEXT NOT NULL REFERENCES people,
  tier TEXT NOT NULL,
  cause TEXT NOT NULL,
  message_id TEXT UNIQUE,
  parent_id TEXT,
  root_id TEXT NOT NULL,
  tainted INTEGER NOT NULL,
  interactive INTEGER NOT NULL,
  created_at INTEGER NOT NULL
);

CREATE TABLE operations (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  run_id TEXT NOT NULL REFERENCES runs,
  person_id TEXT NOT NULL REFERENCES people,
  kind TEXT NOT NULL,
  tool TEXT NOT NULL,
  args BLOB NOT NULL,
  args_sha256 BLOB NOT NULL,
  decision TEXT NOT NULL,
  reason TEXT NOT NULL,
  rule TEXT NOT NULL,
  detail TEXT NOT NULL,
  tier TEXT NOT NULL,
  capability TEXT NOT NULL,
  state TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  settle_until INTEGER,
  approved_at INTEGER,
  noticed_at INTEGER,
  begun_at INTEGER,
  begun_by TEXT NOT NULL DEFAULT '',
  result TEXT,
  closed_at INTEGER
);
CREATE INDEX operations_settling ON operations (settle_until) WHERE state = 'settling';
CREATE INDEX operations_approved ON operations (approved_at) WHERE state = 'approved';

CREATE TABLE offers (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  operation_id TEXT NOT NULL UNIQUE REFERENCES operations,
  person_id TEXT NOT NULL REFERENCES people,
  run_id TEXT NOT NULL,
  root_run_id TEXT NOT NULL,
  address TEXT NOT NULL,
  our_number TEXT NOT NULL,
  state TEXT NOT NULL,
  present TEXT NOT NULL,
  tool TEXT NOT NULL,
  capability TEXT NOT NULL,
  args_sha256 BLOB NOT NULL,
  binding_sha256 BLOB NOT NULL,
  label TEXT NOT NULL,
  shown_text TEXT NOT NULL,
  ask_line TEXT NOT NULL,
  policy_version TEXT NOT NULL,
  ttl_us INTEGER NOT NULL,
  settle_us INTEGER NOT NULL,
  supersedes TEXT,
  created_at INTEGER NOT NULL,
  sent_at INTEGER,           -- when it may have reached a screen
  shown_at INTEGER,
  asked_at INTEGER,          -- the newest accepted text about it
  reasks INTEGER NOT NULL DEFAULT 0,
  expires_at INTEGER NOT NULL,
  closed_at INTEGER,
  closed_by TEXT,
  consumed_by TEXT UNIQUE REFERENCES messages   -- one message approves at most one offer, ever
);
CREATE INDEX offers_live ON offers (person_id) WHERE state IN ('sending', 'open');
CREATE INDEX offers_queue ON offers (person_id, created_at) WHERE state = 'queued';
CREATE INDEX offers_due ON offers (expires_at) WHERE state IN ('queued', 'sending', 'open');
CREATE INDEX offers_closed ON offers (person_id, closed_at) WHERE sent_at IS NOT NULL;
CREATE INDEX offers_account ON offers (account_id, created_at DESC);

CREATE TABLE texts (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL,
  person_id TEXT NOT NULL REFERENCES people,
  number INTEGER NOT NULL,
  kind TEXT NOT NULL,
  offer_id TEXT REFERENCES offers,
  address TEXT NOT NULL,
  our_number TEXT NOT NULL,
  body TEXT NOT NULL,
  state TEXT NOT NULL,
  provider_id TEXT NOT NULL DEFAULT '',
  code INTEGER NOT NULL DEFAULT 0,
  queued_at INTEGER NOT NULL,
  sending_at INTEGER,
  ended_at INTEGER,
  resent INTEGER NOT NULL DEFAULT 0,
  UNIQUE (person_id, number)
);
CREATE INDEX texts_queued ON texts (queued_at) WHERE state = 'queued';
CREATE INDEX texts_sending ON texts (person_id) WHERE state = 'sending';
CREATE INDEX texts_doubt ON texts (sending_at) WHERE state IN ('sending', 'unknown') AND NOT resent;

CREATE TABLE ledger (
  account_id TEXT NOT NULL,
  person_id TEXT NOT NULL REFERENCES people,
  number INTEGER NOT NULL,
  at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  operation_id TEXT NOT NULL REFERENCES operations,
  body BLOB NOT NULL,
  prev BLOB NOT NULL,
  hash BLOB NOT NULL,
  PRIMARY KEY (person_id, number)
);
CREATE UNIQUE INDEX ledger_consumed_once ON ledger (operation_id) WHERE kind = 'consumed';
CREATE UNIQUE INDEX ledger_begun_once ON ledger (operation_id) WHERE kind = 'begun';

-- One writer at a time: the order of rows is the order of commits.
CREATE TABLE events (
  row INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL,
  account_id TEXT NOT NULL,
  type TEXT NOT NULL,
  at INTEGER NOT NULL,
  data TEXT NOT NULL           
);
CREATE INDEX events_account ON events (account_id, row);

CREATE TABLE idempotency (
  account_id TEXT NOT NULL,
  call TEXT NOT NULL,
  key TEXT NOT NULL,
  body_sha256 BLOB NOT NULL,
  operation_id TEXT NOT NULL,
  PRIMARY KEY (account_id, call, key)
);

-- +goose Down
DROP TABLE idempotency;
DROP TABLE events;
DROP TABLE ledger;
DROP TABLE texts;
DROP TABLE offers;
DROP TABLE operations;
DROP TABLE runs;
DROP TABLE messages;
DROP TABLE threads;
DROP TABLE own_addresses;
DROP TABLE addresses;
DROP TABLE people;
DROP TABLE keys;
DROP TABLE accounts;
