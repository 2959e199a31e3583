-- Who may read which artifact: equal bytes are stored once, and belong to everybody who made them.
CREATE TABLE artifact_owners (
    owner TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    granted_at INTEGER NOT NULL,
    PRIMARY KEY (owner, sha256)
) STRICT, WITHOUT ROWID;
