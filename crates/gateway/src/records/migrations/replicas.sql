-- The address at which other gateways reach one, if it has one.
ALTER TABLE gateways ADD COLUMN address TEXT;

-- The gateway that made a container's sandbox, or used it last.
ALTER TABLE containers ADD COLUMN holder TEXT;

-- How far the bucket of a quota per minute is emptied by all gateways, in thousandths, and since when it has filled itself again.
CREATE TABLE rates (
    owner TEXT NOT NULL,
    quota TEXT NOT NULL,
    taken INTEGER NOT NULL,
    since_ms INTEGER NOT NULL,
    PRIMARY KEY (owner, quota)
) STRICT, WITHOUT ROWID;

-- The sandboxes that an owner has in a gateway.
CREATE TABLE places (
    owner TEXT NOT NULL,
    gateway TEXT NOT NULL,
    taken INTEGER NOT NULL,
    PRIMARY KEY (owner, gateway)
) STRICT, WITHOUT ROWID;
