-- Requests of connectors that an owner's code made on a day, and the bytes of their answers.
ALTER TABLE usage ADD COLUMN fetches INTEGER NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN fetched_bytes INTEGER NOT NULL DEFAULT 0;
