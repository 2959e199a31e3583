-- The tables of the records. They are written for SQLite, with its types; `database/schema.rs` says how Postgres reads them.

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
    events TEXT,
    -- The gateway that writes it.
    holder TEXT,
    bytes INTEGER
        GENERATED ALWAYS AS (octet_length(body) + octet_length(input) + coalesce(octet_length(events), 0)) VIRTUAL
) STRICT;
CREATE INDEX responses_by_age ON responses (created_at);
CREATE INDEX responses_that_run ON responses (status) WHERE status IN ('queued', 'in_progress');

-- What the model read and said, each turn its own part. A turn outlives its response as long as a later one continues from it.
CREATE TABLE turns (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    previous TEXT REFERENCES turns (id),
    items TEXT NOT NULL,
    -- The container that its code ran in last.
    container TEXT,
    -- What is remembered of the results that tools gave up to a turn, as JSON.
    evidence TEXT,
    bytes INTEGER
        GENERATED ALWAYS AS (octet_length(items) + coalesce(octet_length(evidence), 0)) VIRTUAL
) STRICT;
CREATE INDEX turns_by_previous ON turns (previous) WHERE previous IS NOT NULL;

-- The results of tools that turns keep, for what they count against. A conversation has those of its earlier turns, too: each counts once.
CREATE TABLE turn_results (
    owner TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    turn TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (owner, sha256, turn)
) STRICT, WITHOUT ROWID;
CREATE INDEX turn_results_of_turn ON turn_results (turn);

-- Items of responses by their ids, as the model knows them.
CREATE TABLE output_items (
    owner TEXT NOT NULL,
    id TEXT NOT NULL,
    response TEXT NOT NULL REFERENCES responses (id) ON DELETE CASCADE,
    items TEXT NOT NULL,
    bytes INTEGER
        GENERATED ALWAYS AS (octet_length(id) + octet_length(items)) VIRTUAL,
    PRIMARY KEY (owner, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX output_items_by_response ON output_items (response);

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
    evidence TEXT,
    bytes INTEGER
        GENERATED ALWAYS AS (octet_length(id) + octet_length(metadata) + coalesce(octet_length(evidence), 0)) VIRTUAL
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
    bytes INTEGER
        GENERATED ALWAYS AS (octet_length(id) + octet_length(body) + octet_length(items)) VIRTUAL,
    UNIQUE (conversation, id)
) STRICT;
CREATE INDEX items_of_conversation ON conversation_items (conversation, number);

-- Keys that nobody but this gateway knows.
CREATE TABLE secrets (
    name TEXT PRIMARY KEY,
    key BLOB NOT NULL
) STRICT;

-- Who may read which artifact: equal bytes are stored once, and belong to everybody who made them.
CREATE TABLE artifact_owners (
    owner TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    granted_at INTEGER NOT NULL,
    PRIMARY KEY (owner, sha256)
) STRICT, WITHOUT ROWID;

-- Keys of the API. A revoked key stays, so that it can be told who made what, and so that revoking the last one opens nothing.
CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    allowance TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    last_used_at INTEGER,
    -- Names of the connectors that code of a key may call, as a JSON list; `*` stands for all.
    connectors TEXT NOT NULL DEFAULT '[]',
    -- Weakest backend behind which code of a key may run; NULL allows every one.
    minimum_backend TEXT,
    -- Widest network policy of code of a key; NULL allows every one that the server allows.
    max_network TEXT,
    -- Whether a key may make, list and revoke keys.
    admin INTEGER NOT NULL DEFAULT 0
) STRICT;
-- postgres: ALTER TABLE keys ADD COLUMN rowid BIGINT GENERATED ALWAYS AS IDENTITY;
CREATE UNIQUE INDEX keys_by_name ON keys (name) WHERE revoked_at IS NULL;

-- What an owner used on a day, which is counted in days since 1970 (UTC).
CREATE TABLE usage (
    owner TEXT NOT NULL,
    day INTEGER NOT NULL,
    cells INTEGER NOT NULL,
    cell_millis INTEGER NOT NULL,
    upload_bytes INTEGER NOT NULL,
    -- Requests of connectors, and the bytes of their answers.
    fetches INTEGER NOT NULL DEFAULT 0,
    fetched_bytes INTEGER NOT NULL DEFAULT 0,
    -- Layers of required packages that were installed.
    layers INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (owner, day)
) STRICT, WITHOUT ROWID;

-- Gateways that share these records. A lease ends by the clock of the database, in milliseconds since 1970.
CREATE TABLE gateways (
    id TEXT PRIMARY KEY,
    expires_ms INTEGER NOT NULL,
    -- The address at which other gateways reach it, if it has one.
    address TEXT
) STRICT;

-- How far the bucket of a quota per minute is emptied by all gateways, in thousandths, and since when it has filled itself again.
CREATE TABLE rates (
    owner TEXT NOT NULL,
    quota TEXT NOT NULL,
    taken INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    PRIMARY KEY (owner, quota)
) STRICT, WITHOUT ROWID;

-- The sandboxes and the running cells that an owner has in a gateway.
CREATE TABLE places (
    owner TEXT NOT NULL,
    gateway TEXT NOT NULL,
    taken INTEGER NOT NULL,
    cells INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (owner, gateway)
) STRICT, WITHOUT ROWID;

-- The gateway that has the sessions of an owner behind a path whose sessions other gateways cannot find by their ids.
CREATE TABLE homes (
    path TEXT NOT NULL,
    owner TEXT NOT NULL,
    gateway TEXT NOT NULL,
    PRIMARY KEY (path, owner)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE containers (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    active_ms INTEGER NOT NULL,
    idle_ms INTEGER NOT NULL,
    memory_limit TEXT,
    -- The hosts that its code reaches, separated by blanks, or null if it has no network.
    allowed_domains TEXT,
    -- Whether a response made the container for itself, so that a conversation which comes back to it can have it again.
    automatic INTEGER NOT NULL DEFAULT 0,
    -- The gateway that made its sandbox, or used it last.
    holder TEXT
) STRICT;
CREATE INDEX containers_of_owner ON containers (owner, number);

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

-- Each version of a file has its own row, so that what was cited stays what it was; `current` is what is at the path now.
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

CREATE TABLE files (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    filename TEXT NOT NULL,
    purpose TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    expires_ms INTEGER
) STRICT;
CREATE INDEX files_of_owner ON files (owner, number);

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

-- Skills, each with one or more versions. Versions count from 1; the number of a version that was deleted is not used again.
CREATE TABLE skills (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    display_name TEXT,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    default_version INTEGER NOT NULL,
    last_version INTEGER NOT NULL
) STRICT;
CREATE INDEX skills_of_owner ON skills (owner, number);

-- A version never changes. Its files are one archive in the artifact store.
CREATE TABLE skill_versions (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    skill TEXT NOT NULL REFERENCES skills (id) ON DELETE CASCADE,
    owner TEXT NOT NULL,
    version INTEGER NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    UNIQUE (skill, version)
) STRICT;

-- The bytes of each owner's responses, conversations, files, those of containers, volumes, and skills, kept by triggers so that a quota
-- need not add them up.
CREATE TABLE stored (
    owner TEXT PRIMARY KEY,
    bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
/* sqlite: */
CREATE TRIGGER files_added AFTER INSERT ON files BEGIN
    INSERT INTO stored VALUES (new.owner, new.bytes) ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER files_removed AFTER DELETE ON files BEGIN
    UPDATE stored SET bytes = bytes - old.bytes WHERE owner = old.owner;
END;
CREATE TRIGGER container_files_added AFTER INSERT ON container_files BEGIN
    INSERT INTO stored VALUES (new.owner, new.bytes) ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER container_files_removed AFTER DELETE ON container_files BEGIN
    UPDATE stored SET bytes = bytes - old.bytes WHERE owner = old.owner;
END;
CREATE TRIGGER skill_versions_added AFTER INSERT ON skill_versions BEGIN
    INSERT INTO stored VALUES (new.owner, new.bytes) ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER skill_versions_removed AFTER DELETE ON skill_versions BEGIN
    UPDATE stored SET bytes = bytes - old.bytes WHERE owner = old.owner;
END;
CREATE TRIGGER volumes_added AFTER INSERT ON volumes BEGIN
    INSERT INTO stored VALUES (new.owner, new.bytes) ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER volumes_removed AFTER DELETE ON volumes BEGIN
    UPDATE stored SET bytes = bytes - old.bytes WHERE owner = old.owner;
END;
CREATE TRIGGER volumes_changed AFTER UPDATE OF bytes ON volumes BEGIN
    UPDATE stored SET bytes = bytes + new.bytes - old.bytes WHERE owner = new.owner;
END;
CREATE TRIGGER responses_added AFTER INSERT ON responses BEGIN
    INSERT INTO stored VALUES (new.owner, new.bytes) ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER responses_removed AFTER DELETE ON responses BEGIN
    UPDATE stored SET bytes = bytes - old.bytes WHERE owner = old.owner;
END;
CREATE TRIGGER responses_changed AFTER UPDATE OF body, events ON responses BEGIN
    UPDATE stored SET bytes = bytes + new.bytes - old.bytes WHERE owner = new.owner;
END;
CREATE TRIGGER turns_added AFTER INSERT ON turns BEGIN
    INSERT INTO stored VALUES (new.owner, new.bytes) ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER turns_removed AFTER DELETE ON turns BEGIN
    UPDATE stored SET bytes = bytes - old.bytes WHERE owner = old.owner;
END;
CREATE TRIGGER output_items_added AFTER INSERT ON output_items BEGIN
    INSERT INTO stored VALUES (new.owner, new.bytes) ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER output_items_removed AFTER DELETE ON output_items BEGIN
    UPDATE stored SET bytes = bytes - old.bytes WHERE owner = old.owner;
END;
CREATE TRIGGER output_items_changed AFTER UPDATE OF items ON output_items BEGIN
    UPDATE stored SET bytes = bytes + new.bytes - old.bytes WHERE owner = new.owner;
END;
CREATE TRIGGER conversations_added AFTER INSERT ON conversations BEGIN
    INSERT INTO stored VALUES (new.owner, new.bytes) ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER conversations_removed AFTER DELETE ON conversations BEGIN
    UPDATE stored SET bytes = bytes - old.bytes WHERE owner = old.owner;
END;
CREATE TRIGGER conversations_changed AFTER UPDATE OF metadata, evidence ON conversations BEGIN
    UPDATE stored SET bytes = bytes + new.bytes - old.bytes WHERE owner = new.owner;
END;
CREATE TRIGGER conversation_items_added AFTER INSERT ON conversation_items BEGIN
    INSERT INTO stored VALUES (new.owner, new.bytes) ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER conversation_items_removed AFTER DELETE ON conversation_items BEGIN
    UPDATE stored SET bytes = bytes - old.bytes WHERE owner = old.owner;
END;
/* :sqlite */
-- postgres: CREATE FUNCTION store_added() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
-- postgres:     INSERT INTO stored VALUES (new.owner, new.bytes) ON CONFLICT (owner) DO UPDATE SET bytes = stored.bytes + excluded.bytes;
-- postgres:     RETURN NULL;
-- postgres: END $$;
-- postgres: CREATE FUNCTION store_removed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
-- postgres:     UPDATE stored SET bytes = bytes - old.bytes WHERE owner = old.owner;
-- postgres:     RETURN NULL;
-- postgres: END $$;
-- postgres: CREATE FUNCTION store_changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
-- postgres:     UPDATE stored SET bytes = bytes + new.bytes - old.bytes WHERE owner = new.owner;
-- postgres:     RETURN NULL;
-- postgres: END $$;
-- postgres: CREATE TRIGGER added AFTER INSERT ON files FOR EACH ROW EXECUTE FUNCTION store_added();
-- postgres: CREATE TRIGGER removed AFTER DELETE ON files FOR EACH ROW EXECUTE FUNCTION store_removed();
-- postgres: CREATE TRIGGER added AFTER INSERT ON container_files FOR EACH ROW EXECUTE FUNCTION store_added();
-- postgres: CREATE TRIGGER removed AFTER DELETE ON container_files FOR EACH ROW EXECUTE FUNCTION store_removed();
-- postgres: CREATE TRIGGER added AFTER INSERT ON skill_versions FOR EACH ROW EXECUTE FUNCTION store_added();
-- postgres: CREATE TRIGGER removed AFTER DELETE ON skill_versions FOR EACH ROW EXECUTE FUNCTION store_removed();
-- postgres: CREATE TRIGGER added AFTER INSERT ON volumes FOR EACH ROW EXECUTE FUNCTION store_added();
-- postgres: CREATE TRIGGER removed AFTER DELETE ON volumes FOR EACH ROW EXECUTE FUNCTION store_removed();
-- postgres: CREATE TRIGGER changed AFTER UPDATE OF bytes ON volumes FOR EACH ROW EXECUTE FUNCTION store_changed();
-- postgres: CREATE TRIGGER added AFTER INSERT ON responses FOR EACH ROW EXECUTE FUNCTION store_added();
-- postgres: CREATE TRIGGER removed AFTER DELETE ON responses FOR EACH ROW EXECUTE FUNCTION store_removed();
-- postgres: CREATE TRIGGER changed AFTER UPDATE OF body, events ON responses FOR EACH ROW EXECUTE FUNCTION store_changed();
-- postgres: CREATE TRIGGER added AFTER INSERT ON turns FOR EACH ROW EXECUTE FUNCTION store_added();
-- postgres: CREATE TRIGGER removed AFTER DELETE ON turns FOR EACH ROW EXECUTE FUNCTION store_removed();
-- postgres: CREATE TRIGGER added AFTER INSERT ON output_items FOR EACH ROW EXECUTE FUNCTION store_added();
-- postgres: CREATE TRIGGER removed AFTER DELETE ON output_items FOR EACH ROW EXECUTE FUNCTION store_removed();
-- postgres: CREATE TRIGGER changed AFTER UPDATE OF items ON output_items FOR EACH ROW EXECUTE FUNCTION store_changed();
-- postgres: CREATE TRIGGER added AFTER INSERT ON conversations FOR EACH ROW EXECUTE FUNCTION store_added();
-- postgres: CREATE TRIGGER removed AFTER DELETE ON conversations FOR EACH ROW EXECUTE FUNCTION store_removed();
-- postgres: CREATE TRIGGER changed AFTER UPDATE OF metadata, evidence ON conversations FOR EACH ROW EXECUTE FUNCTION store_changed();
-- postgres: CREATE TRIGGER added AFTER INSERT ON conversation_items FOR EACH ROW EXECUTE FUNCTION store_added();
-- postgres: CREATE TRIGGER removed AFTER DELETE ON conversation_items FOR EACH ROW EXECUTE FUNCTION store_removed();
