-- Widest network policy of code of a key; NULL allows every one that the server allows.
ALTER TABLE keys ADD COLUMN max_network TEXT;
