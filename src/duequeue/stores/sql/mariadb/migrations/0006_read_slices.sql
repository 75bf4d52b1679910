-- MySQL has no ADD COLUMN IF NOT EXISTS, but a migration that broke off must be able to run again.

-- Whether a slice of a micro-batch still has to be read to its end. NULL, for those that were leased before
-- this column was there, means that it is not known.
SET @duequeue = (
    SELECT IF(COUNT(*) = 0, 'ALTER TABLE duequeue_stream_batch ADD COLUMN unread boolean', 'DO 0')
    FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'duequeue_stream_batch' AND column_name = 'unread'
);

PREPARE duequeue_change FROM @duequeue;

EXECUTE duequeue_change;

DEALLOCATE PREPARE duequeue_change;

-- The query that wrote the last batch, and a digest of its rows, by which another batch is told from it.
SET @duequeue = (
    SELECT IF(COUNT(*) = 0, 'ALTER TABLE duequeue_stream_commit ADD COLUMN query varbinary(800)', 'DO 0')
    FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'duequeue_stream_commit' AND column_name = 'query'
);

PREPARE duequeue_change FROM @duequeue;

EXECUTE duequeue_change;

DEALLOCATE PREPARE duequeue_change;

SET @duequeue = (
    SELECT IF(COUNT(*) = 0, 'ALTER TABLE duequeue_stream_commit ADD COLUMN digest bigint', 'DO 0')
    FROM information_schema.columns
    WHERE table_schema = DATABASE() AND table_name = 'duequeue_stream_commit' AND column_name = 'digest'
);

PREPARE duequeue_change FROM @duequeue;

EXECUTE duequeue_change;

DEALLOCATE PREPARE duequeue_change;
