-- What settled messages leave behind, if their queue keeps a history. An id is never used again, so
-- that it can tell what was archived.
CREATE TABLE duequeue_history (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    asked_at INTEGER NOT NULL,
    delivered_at INTEGER,
    settled_at INTEGER NOT NULL,
    kind_id INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    key TEXT NOT NULL
) STRICT;

CREATE INDEX duequeue_history_time ON duequeue_history (kind_id, settled_at, id);

-- An update of this view settles messages: each leaves a row, and is deleted, in one statement.
CREATE VIEW duequeue_settling AS
SELECT
    id AS message_id, kind_id, key, lease_token, asked_at, attempt AS attempts,
    NULL AS delivered_at, NULL AS settled_at, NULL AS outcome
FROM duequeue_message;

CREATE TRIGGER duequeue_settle INSTEAD OF UPDATE ON duequeue_settling
BEGIN
    INSERT INTO duequeue_history
        (kind_id, key, asked_at, delivered_at, settled_at, attempts, outcome)
    VALUES
        (OLD.kind_id, OLD.key, OLD.asked_at, NEW.delivered_at, NEW.settled_at, NEW.attempts, NEW.outcome);
    DELETE FROM duequeue_message WHERE id = OLD.message_id;
END;

-- What an offer has overwritten. Only an offer that is to leave a row sets these, and so pulls the
-- trigger.
ALTER TABLE duequeue_message ADD COLUMN replaced_asked_at INTEGER;
ALTER TABLE duequeue_message ADD COLUMN replaced_attempts INTEGER;

CREATE TRIGGER duequeue_replace AFTER UPDATE OF replaced_asked_at ON duequeue_message
BEGIN
    INSERT INTO duequeue_history
        (kind_id, key, asked_at, settled_at, attempts, outcome)
    VALUES
        (NEW.kind_id, NEW.key, NEW.replaced_asked_at, NEW.updated_at, NEW.replaced_attempts, 'replaced');
END;
