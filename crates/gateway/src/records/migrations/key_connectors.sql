-- Names of the connectors that code of a key may call, as a JSON list; `*` stands for all.
ALTER TABLE keys ADD COLUMN connectors TEXT NOT NULL DEFAULT '[]';
