-- Weakest backend behind which code of a key may run; NULL allows every one.
ALTER TABLE keys ADD COLUMN minimum_backend TEXT;
