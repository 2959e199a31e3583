-- Keys of the API. A revoked key stays, so that it can be told who made what, and so that revoking the last one opens nothing.
CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    allowance TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    last_used_at INTEGER
) STRICT;
-- postgres: ALTER TABLE keys ADD COLUMN rowid BIGINT GENERATED ALWAYS AS IDENTITY;
CREATE UNIQUE INDEX keys_by_name ON keys (name) WHERE revoked_at IS NULL;
