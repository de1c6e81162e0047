-- +goose Up
-- What was said about an offer, which its end and a cited yes look at.
CREATE INDEX texts_offer ON texts (offer_id) WHERE offer_id IS NOT NULL;

-- Most offers have no page, and an entry of each would be written anew with every change of its state.
CREATE UNIQUE INDEX offers_token ON offers (token_sha256) WHERE token_sha256 IS NOT NULL;
ALTER TABLE offers DROP CONSTRAINT offers_token_sha256_key;

-- +goose Down
ALTER TABLE offers ADD CONSTRAINT offers_token_sha256_key UNIQUE (token_sha256);
DROP INDEX offers_token;
DROP INDEX texts_offer;
