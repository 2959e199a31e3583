-- Which container a conversation uses, by a key that its client repeats in each request.
CREATE TABLE container_keys (
    owner TEXT NOT NULL,
    -- The kind of the key, and the SHA-256 of its value.
    key TEXT NOT NULL,
    -- Null before any code has run.
    container TEXT REFERENCES containers (id) ON DELETE SET NULL,
    -- Whether several conversations have begun with it, so that it leads to none of them.
    shared INTEGER NOT NULL DEFAULT 0,
    used_ms INTEGER NOT NULL,
    PRIMARY KEY (owner, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX container_keys_by_container ON container_keys (container) WHERE container IS NOT NULL;
