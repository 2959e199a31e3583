-- Responses as clients see them.
CREATE TABLE responses (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    status TEXT NOT NULL,
    -- Seconds since 1970.
    created_at INTEGER NOT NULL,
    -- The response object.
    body TEXT NOT NULL,
    -- The items of its request.
    input TEXT NOT NULL,
    -- What was streamed of a background response.
    events TEXT
) STRICT;
CREATE INDEX responses_by_age ON responses (created_at);
CREATE INDEX responses_that_run ON responses (status) WHERE status IN ('queued', 'in_progress');

-- What the model read and said, each turn its own part. A turn outlives its response as long as a later one goes on from it.
CREATE TABLE turns (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    previous TEXT REFERENCES turns (id),
    items TEXT NOT NULL,
    -- The container that its code ran in last.
    container TEXT
) STRICT;
CREATE INDEX turns_by_previous ON turns (previous) WHERE previous IS NOT NULL;

-- Items of responses by their ids, as the model knows them.
CREATE TABLE output_items (
    owner TEXT NOT NULL,
    id TEXT NOT NULL,
    response TEXT NOT NULL REFERENCES responses (id) ON DELETE CASCADE,
    items TEXT NOT NULL,
    PRIMARY KEY (owner, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX output_items_by_response ON output_items (response);

-- Keys that nobody but this gateway knows.
CREATE TABLE secrets (
    name TEXT PRIMARY KEY,
    key BLOB NOT NULL
) STRICT;
