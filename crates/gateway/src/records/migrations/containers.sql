CREATE TABLE containers (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    active_ms INTEGER NOT NULL,
    idle_ms INTEGER NOT NULL,
    memory_limit TEXT
) STRICT;
CREATE INDEX containers_of_owner ON containers (owner, number);

-- Each version of a file has a row of its own, so that what was cited stays what it was; `current` is what is at the path now.
CREATE TABLE container_files (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    container TEXT NOT NULL REFERENCES containers (id) ON DELETE CASCADE,
    owner TEXT NOT NULL,
    path TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    source TEXT NOT NULL,
    current INTEGER NOT NULL
) STRICT;
CREATE INDEX container_files_of_container ON container_files (container, path);
