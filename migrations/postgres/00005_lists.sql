-- +goose Up
-- What a text has numbered, in the order of the numbers; null where it is no list. A number that comes back is one of
-- these, or nothing.
ALTER TABLE texts ADD COLUMN lists uuid[];

-- +goose Down
ALTER TABLE texts DROP COLUMN lists;
