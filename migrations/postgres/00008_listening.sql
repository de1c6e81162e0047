-- +goose Up
-- Whose key proposed an operation: whether an agent listens is asked of the keys whose offers are before the person. Null:
-- proposed before this was kept; then any agent's key of the account counts.
ALTER TABLE operations ADD COLUMN key_id uuid;

-- +goose Down
ALTER TABLE operations DROP COLUMN key_id;
