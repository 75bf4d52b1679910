-- The queries for whole batches that have the same text in several dialects. If a dialect has its own
-- text for one of these names, that one counts.

-- name: list_staged
SELECT part, count(*) FROM duequeue_stage
WHERE writer = :writer AND batch = :batch
GROUP BY part;

-- name: empty_stage
-- This also deletes what failed tries of earlier batches left behind.
DELETE FROM duequeue_stage WHERE writer = :writer AND batch <= :batch;

-- name: open_commit
-- This changes nothing if this batch or a later one is merged already. Another process that merges
-- the same batch at the same time waits here.
INSERT INTO duequeue_stream_commit AS stored (kind_id, app, batch, committed_at)
VALUES (:kind_id, :app, :batch, :now)
ON CONFLICT (kind_id, app) DO UPDATE
SET batch = excluded.batch, committed_at = excluded.committed_at
WHERE stored.batch < excluded.batch;

-- name: last_commit
SELECT batch, query, digest FROM duequeue_stream_commit
WHERE kind_id = :kind_id AND app = :app;

-- name: close_commit
UPDATE duequeue_stream_commit SET created = :created, updated = :updated, ignored = :ignored
WHERE kind_id = :kind_id AND app = :app;

-- name: find_commit
SELECT batch, created, updated, ignored FROM duequeue_stream_commit
WHERE kind_id = :kind_id AND app = :app;

-- name: forget_commit
DELETE FROM duequeue_stream_commit WHERE kind_id = :kind_id AND app = :app;

-- name: forget_stale_commits
DELETE FROM duequeue_stream_commit
WHERE kind_id = :kind_id AND batch = :batch AND committed_at < :before;

-- name: measure_backlog
SELECT count(*), min(due_at) FROM (
    SELECT due_at FROM duequeue_message
    WHERE kind_id = :kind_id AND due_at <= :due_until AND leased_until <= :now
    ORDER BY due_at, id
    LIMIT :most
) AS waiting;

-- name: note_stream_lease
UPDATE duequeue_stream_batch SET leased_until = :until
WHERE kind_id = :kind_id AND consumer = :consumer AND sequence = :sequence;

-- name: note_slice_read
UPDATE duequeue_stream_batch SET unread = FALSE
WHERE kind_id = :kind_id AND consumer = :consumer AND sequence = :sequence AND slice = :slice;

-- name: unread_slices
SELECT sequence, slice FROM duequeue_stream_batch
WHERE kind_id = :kind_id AND consumer = :consumer AND sequence <= :sequence AND unread
ORDER BY sequence, slice;

-- name: when_leased
SELECT min(leased_at) FROM duequeue_stream_batch
WHERE kind_id = :kind_id AND consumer = :consumer AND sequence = :sequence;

-- name: forget_stream_batch
DELETE FROM duequeue_stream_batch
WHERE kind_id = :kind_id AND consumer = :consumer AND sequence = :sequence;

-- name: forget_stale_batches
-- These batches belong to consumers that never came back.
DELETE FROM duequeue_stream_batch WHERE kind_id = :kind_id AND leased_until < :before;

-- name: last_message
SELECT coalesce(max(id), 0) FROM duequeue_message;

-- name: add_to_commit
UPDATE duequeue_stream_commit
SET
    created = created + :created, updated = updated + :updated, ignored = ignored + :ignored,
    query = CAST(:query AS text), digest = CAST(:digest AS bigint)
WHERE kind_id = :kind_id AND app = :app;

-- name: measure_messages
SELECT coalesce(min(id), 0), coalesce(max(id), 0) + 1 FROM duequeue_message;
