-- What is remembered of the results that tools gave up to a turn, as JSON.
ALTER TABLE turns ADD COLUMN evidence TEXT;
