-- Folders of files that outlive sessions. The manifest is JSON; the contents are in the artifact store.
CREATE TABLE volumes (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    saved_ms INTEGER,
    revision INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    files INTEGER NOT NULL,
    manifest TEXT NOT NULL,
    -- The gateway of the session that writes it, if there is one.
    holder TEXT,
    -- The last session that wrote it, and what became of its changes.
    writer TEXT,
    state TEXT,
    UNIQUE (owner, name)
) STRICT;
