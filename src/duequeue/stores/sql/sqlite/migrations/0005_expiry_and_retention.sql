-- The instant from which on a message is no longer delivered, or NULL.
ALTER TABLE duequeue_message ADD COLUMN expires_at INTEGER;
