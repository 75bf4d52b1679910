-- The instant from which on a message is no longer delivered, or NULL. At the end of the row, and without
-- an index, so that it costs nothing for messages that do not expire.
ALTER TABLE duequeue_message ADD COLUMN expires_at bigint;
