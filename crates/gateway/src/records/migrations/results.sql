-- The results of tools that turns keep, for what they count against. A conversation has those of its earlier turns, too: each counts once.
CREATE TABLE turn_results (
    owner TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    turn TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (owner, sha256, turn)
) STRICT, WITHOUT ROWID;
CREATE INDEX turn_results_of_turn ON turn_results (turn);
