-- +goose Up
-- What was said about an offer, which its end and a cited yes look at.
CREATE INDEX texts_offer ON texts (offer_id) WHERE offer_id IS NOT NULL;

-- +goose Down
DROP INDEX texts_offer;
