-- +goose Up
-- ask: a standing permission that is asked for by text is an offer that needs its own yes; direct: the text is enough.
ALTER TABLE accounts ADD COLUMN standing_by_text text NOT NULL DEFAULT 'ask';

-- Whom the owner's words may name. They come in through a key of their own, never the agent's.
CREATE TABLE contacts (
  account_id text NOT NULL REFERENCES accounts,
  id text NOT NULL,
  name text NOT NULL,
  aliases text[] NOT NULL,
  PRIMARY KEY (account_id, id)
);
CREATE TABLE contact_addresses (
  account_id text NOT NULL,
  contact_id text NOT NULL,
  place int NOT NULL,
  address text NOT NULL,               -- canonical
  PRIMARY KEY (account_id, contact_id, address),
  FOREIGN KEY (account_id, contact_id) REFERENCES contacts ON DELETE CASCADE
);
CREATE INDEX contact_addresses_address ON contact_addresses (account_id, address);

-- What a person lets happen without a question. Recipients are pinned when it is made, so that a contact which is edited
-- later widens nothing.
CREATE TABLE permissions (
  id uuid PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts,
  person_id uuid NOT NULL REFERENCES people,
  number int NOT NULL,                 -- by which the person names it; never given twice
  how text NOT NULL,                   -- once, standing, direct
  granted jsonb NOT NULL,              -- what was asked for, with the recipients' canonical addresses
  budget int,                          -- how many calls; null: no limit
  used int NOT NULL DEFAULT 0,
  used_at timestamptz,
  valid_until timestamptz,             -- null: until it is revoked
  message_id uuid REFERENCES messages, -- whose words it was taken from
  operation_id uuid UNIQUE REFERENCES operations, -- the offer of it
  created_at timestamptz NOT NULL,
  granted_at timestamptz,              -- null: its offer was not approved
  revoked_at timestamptz,
  revoked_by text NOT NULL DEFAULT '',
  UNIQUE (person_id, number)
);
CREATE INDEX permissions_account ON permissions (account_id, person_id, number);

ALTER TABLE operations ADD COLUMN permission_id uuid;   -- that its allow was spent from
CREATE INDEX operations_permission ON operations (approved_at) WHERE state = 'approved' AND tool = 'permission.grant';

-- +goose Down
DROP INDEX operations_permission;
ALTER TABLE operations DROP COLUMN permission_id;
DROP TABLE permissions;
DROP TABLE contact_addresses;
DROP TABLE contacts;
ALTER TABLE accounts DROP COLUMN standing_by_text;
