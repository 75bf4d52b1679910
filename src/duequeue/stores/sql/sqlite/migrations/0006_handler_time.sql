-- How long the handler took that settled a message, if a consumer or the pipeline has handled it.
ALTER TABLE duequeue_history ADD COLUMN handler_ms INTEGER;

-- How long it took for the messages of a micro-batch that are handled but not acked yet, by their ids.
ALTER TABLE duequeue_stream_batch ADD COLUMN handler_ms TEXT;

DROP VIEW duequeue_settling;

CREATE VIEW duequeue_settling AS
SELECT
    id AS message_id, kind_id, key, lease_token, asked_at, attempt AS attempts,
    NULL AS delivered_at, NULL AS settled_at, NULL AS outcome, NULL AS handler_ms
FROM duequeue_message;

CREATE TRIGGER duequeue_settle INSTEAD OF UPDATE ON duequeue_settling
BEGIN
    INSERT INTO duequeue_history
        (kind_id, key, asked_at, delivered_at, settled_at, attempts, outcome, handler_ms)
    VALUES
        (
            OLD.kind_id, OLD.key, OLD.asked_at, NEW.delivered_at, NEW.settled_at, NEW.attempts,
            NEW.outcome, NEW.handler_ms
        );
    DELETE FROM duequeue_message WHERE id = OLD.message_id;
END;
