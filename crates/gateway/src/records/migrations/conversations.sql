-- Conversations of the Conversations API.
CREATE TABLE conversations (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    -- Seconds since 1970.
    created_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    -- A JSON object of strings.
    metadata TEXT NOT NULL,
    -- The container that its code ran in last.
    container TEXT,
    -- What is remembered of the results of tools, as in `turns`.
    evidence TEXT
) STRICT;
CREATE INDEX conversations_by_use ON conversations (used_at);

-- Their items in order: as clients are told them, and as the model knows them.
CREATE TABLE conversation_items (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    owner TEXT NOT NULL,
    conversation TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    body TEXT NOT NULL,
    items TEXT NOT NULL,
    UNIQUE (conversation, id)
) STRICT;
CREATE INDEX items_of_conversation ON conversation_items (conversation, number);
