-- Whether a key may make, list and revoke keys.
ALTER TABLE keys ADD COLUMN admin INTEGER NOT NULL DEFAULT 0;
