-- What an owner used on a day, which is counted in days since 1970 (UTC).
CREATE TABLE usage (
    owner TEXT NOT NULL,
    day INTEGER NOT NULL,
    cells INTEGER NOT NULL,
    cell_millis INTEGER NOT NULL,
    upload_bytes INTEGER NOT NULL,
    PRIMARY KEY (owner, day)
) STRICT, WITHOUT ROWID;
