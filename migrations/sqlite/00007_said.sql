-- +goose Up
-- ask: a standing permission that is asked for by text is an offer that needs its own yes; direct: the text is enough.
ALTER TABLE accounts ADD COLUMN standing_by_text TEXT NOT NULL DEFAULT 'ask';

-- Whom the owner's words may name. They come in through a key of their own, never the agent's.
CREATE TABLE contacts (
  account_id TEXT NOT NULL REFERENCES accounts,
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  aliases TEXT NOT NULL,               -- JSON
  PRIMARY KEY (account_id, id)
);
CREATE TABLE contact_addresses (
  account_id TEXT NOT NULL,
  contact_id TEXT NOT NULL,
  place INTEGER NOT NULL,
  address TEXT NOT NULL,               -- canonical
  PRIMARY KEY (account_id, contact_id, address),
  FOREIGN KEY (account_id, contact_id) REFERENCES contacts ON DELETE CASCADE
);
CREATE INDEX contact_addresses_address ON contact_addresses (account_id, address);

-- What a person lets happen without a question. Recipients are pinned when it is made, so that a contact which is edited
-- later widens nothing.
CREATE TABLE permissions (
  id TEXT PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts,
  person_id TEXT NOT NULL REFERENCES people,
  number INTEGER NOT NULL,             -- by which the person names it; never given twice
  how TEXT NOT NULL,                   -- once, standing, direct
  granted TEXT NOT NULL,               -- what was asked for, with the recipients' canonical addresses
  budget INTEGER,                      -- how many calls; null: no limit
  used INTEGER NOT NULL DEFAULT 0,
  used_at INTEGER,
  valid_until INTEGER,                 -- null: until it is revoked
  message_id TEXT REFERENCES messages, -- whose words it was taken from
  operation_id TEXT UNIQUE REFERENCES operations, -- the offer of it
  created_at INTEGER NOT NULL,
  granted_at INTEGER,                  -- null: its offer was not approved
  revoked_at INTEGER,
  revoked_by TEXT NOT NULL DEFAULT '',
  UNIQUE (person_id, number)
);
CREATE INDEX permissions_account ON permissions (account_id, person_id, number);

ALTER TABLE operations ADD COLUMN permission_id TEXT;   -- that its allow was spent from
CREATE INDEX operations_permission ON operations (approved_at) WHERE state = 'approved' AND tool = 'permission.grant';

-- +goose Down
DROP INDEX operations_permission;
ALTER TABLE operations DROP COLUMN permission_id;
DROP TABLE permissions;
DROP TABLE contact_addresses;
DROP TABLE contacts;
ALTER TABLE accounts DROP COLUMN standing_by_text;
