-- Whether a slice of a micro-batch still has to be read to its end. NULL, for those that were leased before
-- this column was there, means that it is not known.
ALTER TABLE duequeue_stream_batch ADD COLUMN unread boolean;

-- The query that wrote the last batch, and a digest of its rows, by which another batch is told from it.
ALTER TABLE duequeue_stream_commit ADD COLUMN query text COLLATE "C", ADD COLUMN digest bigint;
