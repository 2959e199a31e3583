-- The gateway that has the sessions of an owner behind a path whose sessions other gateways cannot find by their ids.
CREATE TABLE homes (
    path TEXT NOT NULL,
    owner TEXT NOT NULL,
    gateway TEXT NOT NULL,
    PRIMARY KEY (path, owner)
) STRICT, WITHOUT ROWID;

-- The cells of an owner that run in a gateway; `taken` are its sandboxes.
ALTER TABLE places ADD COLUMN cells INTEGER NOT NULL DEFAULT 0;
