-- Gateways that share these records. A lease ends by the clock of the database, in milliseconds since 1970.
CREATE TABLE gateways (
    id TEXT PRIMARY KEY,
    expires_ms INTEGER NOT NULL
) STRICT;

-- The gateway that writes a response.
ALTER TABLE responses ADD COLUMN holder TEXT;
