-- The bytes of each owner's files, those of containers, and volumes, kept by triggers so that a quota need not add them up.
CREATE TABLE stored (
    owner TEXT PRIMARY KEY,
    bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO stored (owner, bytes)
SELECT owner, sum(bytes) FROM (
    SELECT owner, bytes FROM files
    UNION ALL SELECT owner, bytes FROM container_files
    UNION ALL SELECT owner, bytes FROM volumes
) AS kept GROUP BY owner;
/* sqlite: */
CREATE TRIGGER files_added AFTER INSERT ON files BEGIN
    INSERT INTO stored VALUES (new.owner, new.bytes) ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER files_removed AFTER DELETE ON files BEGIN
    UPDATE stored SET bytes = bytes - old.bytes WHERE owner = old.owner;
END;
CREATE TRIGGER container_files_added AFTER INSERT ON container_files BEGIN
    INSERT INTO stored VALUES (new.owner, new.bytes) ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER container_files_removed AFTER DELETE ON container_files BEGIN
    UPDATE stored SET bytes = bytes - old.bytes WHERE owner = old.owner;
END;
CREATE TRIGGER volumes_added AFTER INSERT ON volumes BEGIN
    INSERT INTO stored VALUES (new.owner, new.bytes) ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER volumes_removed AFTER DELETE ON volumes BEGIN
    UPDATE stored SET bytes = bytes - old.bytes WHERE owner = old.owner;
END;
CREATE TRIGGER volumes_changed AFTER UPDATE OF bytes ON volumes BEGIN
    UPDATE stored SET bytes = bytes + new.bytes - old.bytes WHERE owner = new.owner;
END;
/* :sqlite */
-- postgres: CREATE FUNCTION store_added() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
-- postgres:     INSERT INTO stored VALUES (new.owner, new.bytes) ON CONFLICT (owner) DO UPDATE SET bytes = stored.bytes + excluded.bytes;
-- postgres:     RETURN NULL;
-- postgres: END $$;
-- postgres: CREATE FUNCTION store_removed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
-- postgres:     UPDATE stored SET bytes = bytes - old.bytes WHERE owner = old.owner;
-- postgres:     RETURN NULL;
-- postgres: END $$;
-- postgres: CREATE FUNCTION store_changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
-- postgres:     UPDATE stored SET bytes = bytes + new.bytes - old.bytes WHERE owner = new.owner;
-- postgres:     RETURN NULL;
-- postgres: END $$;
-- postgres: CREATE TRIGGER added AFTER INSERT ON files FOR EACH ROW EXECUTE FUNCTION store_added();
-- postgres: CREATE TRIGGER removed AFTER DELETE ON files FOR EACH ROW EXECUTE FUNCTION store_removed();
-- postgres: CREATE TRIGGER added AFTER INSERT ON container_files FOR EACH ROW EXECUTE FUNCTION store_added();
-- postgres: CREATE TRIGGER removed AFTER DELETE ON container_files FOR EACH ROW EXECUTE FUNCTION store_removed();
-- postgres: CREATE TRIGGER added AFTER INSERT ON volumes FOR EACH ROW EXECUTE FUNCTION store_added();
-- postgres: CREATE TRIGGER removed AFTER DELETE ON volumes FOR EACH ROW EXECUTE FUNCTION store_removed();
-- postgres: CREATE TRIGGER changed AFTER UPDATE OF bytes ON volumes FOR EACH ROW EXECUTE FUNCTION store_changed();
