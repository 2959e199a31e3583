-- What was run: a record of each execution, as JSON.
CREATE TABLE runs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    session TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    record TEXT NOT NULL
) STRICT;
CREATE INDEX runs_of_owners ON runs (owner, number);
CREATE INDEX runs_by_time ON runs (created_ms);
