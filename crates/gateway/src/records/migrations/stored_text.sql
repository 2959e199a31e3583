-- The text of responses and conversations counts as stored bytes, too.
ALTER TABLE responses ADD COLUMN bytes INTEGER
    GENERATED ALWAYS AS (octet_length(body) + octet_length(input) + coalesce(octet_length(events), 0)) VIRTUAL;
ALTER TABLE turns ADD COLUMN bytes INTEGER
    GENERATED ALWAYS AS (octet_length(items) + coalesce(octet_length(evidence), 0)) VIRTUAL;
ALTER TABLE output_items ADD COLUMN bytes INTEGER
    GENERATED ALWAYS AS (octet_length(id) + octet_length(items)) VIRTUAL;
ALTER TABLE conversations ADD COLUMN bytes INTEGER
    GENERATED ALWAYS AS (octet_length(id) + octet_length(metadata) + coalesce(octet_length(evidence), 0)) VIRTUAL;
ALTER TABLE conversation_items ADD COLUMN bytes INTEGER
    GENERATED ALWAYS AS (octet_length(id) + octet_length(body) + octet_length(items)) VIRTUAL;
INSERT INTO stored (owner, bytes)
SELECT owner, sum(bytes) FROM (
    SELECT owner, bytes FROM responses
    UNION ALL SELECT owner, bytes FROM turns
    UNION ALL SELECT owner, bytes FROM output_items
    UNION ALL SELECT owner, bytes FROM conversations
    UNION ALL SELECT owner, bytes FROM conversation_items
) AS kept WHERE true GROUP BY owner
ON CONFLICT (owner) DO UPDATE SET bytes = stored.bytes + excluded.bytes;
/* sqlite: */
CREATE TRIGGER responses_added AFTER INSERT ON responses BEGIN
    INSERT INTO stored VALUES (new.owner, new.bytes) ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER responses_removed AFTER DELETE ON responses BEGIN
    UPDATE stored SET bytes = bytes - old.bytes WHERE owner = old.owner;
END;
CREATE TRIGGER responses_changed AFTER UPDATE OF body, events ON responses BEGIN
    UPDATE stored SET bytes = bytes + new.bytes - old.bytes WHERE owner = new.owner;
END;
CREATE TRIGGER turns_added AFTER INSERT ON turns BEGIN
    INSERT INTO stored VALUES (new.owner, new.bytes) ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER turns_removed AFTER DELETE ON turns BEGIN
    UPDATE stored SET bytes = bytes - old.bytes WHERE owner = old.owner;
END;
CREATE TRIGGER output_items_added AFTER INSERT ON output_items BEGIN
    INSERT INTO stored VALUES (new.owner, new.bytes) ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER output_items_removed AFTER DELETE ON output_items BEGIN
    UPDATE stored SET bytes = bytes - old.bytes WHERE owner = old.owner;
END;
CREATE TRIGGER output_items_changed AFTER UPDATE OF items ON output_items BEGIN
    UPDATE stored SET bytes = bytes + new.bytes - old.bytes WHERE owner = new.owner;
END;
CREATE TRIGGER conversations_added AFTER INSERT ON conversations BEGIN
    INSERT INTO stored VALUES (new.owner, new.bytes) ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER conversations_removed AFTER DELETE ON conversations BEGIN
    UPDATE stored SET bytes = bytes - old.bytes WHERE owner = old.owner;
END;
CREATE TRIGGER conversations_changed AFTER UPDATE OF metadata, evidence ON conversations BEGIN
    UPDATE stored SET bytes = bytes + new.bytes - old.bytes WHERE owner = new.owner;
END;
CREATE TRIGGER conversation_items_added AFTER INSERT ON conversation_items BEGIN
    INSERT INTO stored VALUES (new.owner, new.bytes) ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER conversation_items_removed AFTER DELETE ON conversation_items BEGIN
    UPDATE stored SET bytes = bytes - old.bytes WHERE owner = old.owner;
END;
/* :sqlite */
-- postgres: CREATE TRIGGER added AFTER INSERT ON responses FOR EACH ROW EXECUTE FUNCTION store_added();
-- postgres: CREATE TRIGGER removed AFTER DELETE ON responses FOR EACH ROW EXECUTE FUNCTION store_removed();
-- postgres: CREATE TRIGGER changed AFTER UPDATE OF body, events ON responses FOR EACH ROW EXECUTE FUNCTION store_changed();
-- postgres: CREATE TRIGGER added AFTER INSERT ON turns FOR EACH ROW EXECUTE FUNCTION store_added();
-- postgres: CREATE TRIGGER removed AFTER DELETE ON turns FOR EACH ROW EXECUTE FUNCTION store_removed();
-- postgres: CREATE TRIGGER added AFTER INSERT ON output_items FOR EACH ROW EXECUTE FUNCTION store_added();
-- postgres: CREATE TRIGGER removed AFTER DELETE ON output_items FOR EACH ROW EXECUTE FUNCTION store_removed();
-- postgres: CREATE TRIGGER changed AFTER UPDATE OF items ON output_items FOR EACH ROW EXECUTE FUNCTION store_changed();
-- postgres: CREATE TRIGGER added AFTER INSERT ON conversations FOR EACH ROW EXECUTE FUNCTION store_added();
-- postgres: CREATE TRIGGER removed AFTER DELETE ON conversations FOR EACH ROW EXECUTE FUNCTION store_removed();
-- postgres: CREATE TRIGGER changed AFTER UPDATE OF metadata, evidence ON conversations FOR EACH ROW EXECUTE FUNCTION store_changed();
-- postgres: CREATE TRIGGER added AFTER INSERT ON conversation_items FOR EACH ROW EXECUTE FUNCTION store_added();
-- postgres: CREATE TRIGGER removed AFTER DELETE ON conversation_items FOR EACH ROW EXECUTE FUNCTION store_removed();
