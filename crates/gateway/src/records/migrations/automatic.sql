-- Whether a response made the container for itself, so that a conversation which comes back to it can have it again.
ALTER TABLE containers ADD COLUMN automatic INTEGER NOT NULL DEFAULT 0;
