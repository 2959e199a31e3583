-- Layers of required packages that were installed for an owner on a day.
ALTER TABLE usage ADD COLUMN layers INTEGER NOT NULL DEFAULT 0;
