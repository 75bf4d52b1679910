-- The queries for whole batches on SQLite. The first lines of the store's queries.sql say what they may
-- contain.

-- name: merge_messages
-- This is offer_messages, but it returns only whether each row was created, and whether it was updated.
-- There is no look_first here, because it would cost more than it saves.
INSERT INTO duequeue_message AS stored
    (kind_id, key, payload, headers, due_at, asked_at, created_at)
VALUES (:kind_id, :key, :payload, :headers, :due_at, :due_at, :now)
ON CONFLICT (kind_id, key) DO UPDATE
SET payload = excluded.payload, due_at = excluded.due_at, asked_at = excluded.asked_at,
    headers = excluded.headers, expires_at = NULL, attempt = 0, updated_at = :now,
    leased_until = -62135596800000, lease_token = 0
--h     , replaced_asked_at = stored.asked_at, replaced_attempts = stored.attempt
WHERE
    :replace AND (
        stored.payload != excluded.payload OR stored.asked_at != excluded.asked_at
        OR stored.expires_at IS NOT NULL
    )
RETURNING updated_at IS NULL, updated_at IS NOT NULL, :look_first;

-- name: discard_staged
DELETE FROM duequeue_stage WHERE writer = :writer AND batch = :batch AND part = :part;

-- name: merge_staged
-- This is offer_messages for staged rows, and only for those of the given parts. If several parts have
-- the same key, the last one with replace counts, or the first one if none has replace. A row that may
-- not replace a stored message has a number in replaced_attempts, because ON CONFLICT knows only columns
-- of the table. The query returns whether each row was created, and whether it was updated.
INSERT INTO duequeue_message AS stored
    (kind_id, key, payload, headers, due_at, asked_at, created_at, replaced_attempts)
SELECT :kind_id, key, payload, headers, due_at, due_at, :now, CASE WHEN NOT replace THEN 0 END
FROM (
    -- The other columns are those of the row with the maximum.
    SELECT key, payload, headers, due_at, replace, max(CASE WHEN replace THEN part ELSE -1 - part END)
    FROM duequeue_stage
    WHERE writer = :writer AND batch = :batch
        AND part IN (SELECT listed.value FROM json_each(:parts) AS listed)
    GROUP BY key
)
WHERE TRUE
ORDER BY key
ON CONFLICT (kind_id, key) DO UPDATE
SET payload = excluded.payload, due_at = excluded.due_at, asked_at = excluded.asked_at,
    headers = excluded.headers, expires_at = NULL, attempt = 0, updated_at = :now,
    leased_until = -62135596800000, lease_token = 0
--h     , replaced_asked_at = stored.asked_at, replaced_attempts = stored.attempt
WHERE
    excluded.replaced_attempts IS NULL
    AND (
        stored.payload != excluded.payload OR stored.asked_at != excluded.asked_at
        OR stored.expires_at IS NOT NULL
    )
RETURNING updated_at IS NULL, updated_at IS NOT NULL;

-- name: take_write_place
-- The file has one writer at a time in any case.
SELECT 1 WHERE :most > 0 AND :kind_id IS NOT NULL;

-- name: gather_stream_batch
-- The transaction has the whole file for itself. The next statement leases what is stored here.
INSERT INTO duequeue_stream_batch (
    kind_id, consumer, sequence, slice, leased_at, leased_until, last_due_at, longest_payload, ids,
    unread
)
SELECT
    :kind_id, :consumer, :sequence, slice, :now, :until, max(due_at), max(length),
    json_group_array(id), TRUE
FROM (
    SELECT
        due_at, id, length, (row_number() OVER (ORDER BY due_at, id) - 1) / :slice_size AS slice
    FROM (
        SELECT due_at, id, length(payload) AS length FROM duequeue_message
        WHERE kind_id = :kind_id AND due_at <= :due_until AND id <= :last_id
            AND (due_at, id) > (:after_due, :after_id) AND leased_until <= :now
        ORDER BY due_at, id
        LIMIT :limit
    )
)
GROUP BY slice
RETURNING last_due_at, json_extract(ids, '$[#-1]'), json_array_length(ids);

-- name: lease_gathered
UPDATE duequeue_message
SET leased_until = :until, lease_token = :token, attempt = min(attempt, 2147483646) + 1
WHERE id IN (
    SELECT listed.value FROM duequeue_stream_batch, json_each(ids) AS listed
    WHERE kind_id = :kind_id AND consumer = :consumer AND sequence = :sequence
);

-- name: list_stream_batches
SELECT sequence, count(*), sum(json_array_length(ids))
FROM duequeue_stream_batch WHERE kind_id = :kind_id AND consumer = :consumer
GROUP BY sequence
ORDER BY sequence;

-- name: extend_stream_batch
UPDATE duequeue_message SET leased_until = :until
WHERE id IN (
    SELECT listed.value FROM duequeue_stream_batch, json_each(ids) AS listed
    WHERE kind_id = :kind_id AND consumer = :consumer AND sequence = :sequence
) AND lease_token = :token;

-- name: remove_stream_batch
DELETE FROM duequeue_message
WHERE id IN (
    SELECT listed.value FROM duequeue_stream_batch, json_each(ids) AS listed
    WHERE kind_id = :kind_id AND consumer = :consumer AND sequence = :sequence
) AND lease_token = :token;

-- name: remove_stream_batch_with_history
-- This returns a row for each message.
WITH batch AS (
    SELECT * FROM duequeue_stream_batch
    WHERE kind_id = :kind_id AND consumer = :consumer AND sequence = :sequence
),
handled AS MATERIALIZED (
    SELECT CAST(listed.key AS INTEGER) AS id, listed.value AS ms
    FROM batch, json_each(batch.handler_ms) AS listed
),
held AS MATERIALIZED (
    SELECT listed.value AS id, handled.ms
    FROM batch, json_each(batch.ids) AS listed LEFT JOIN handled ON handled.id = listed.value
)
UPDATE duequeue_settling
SET settled_at = :now, outcome = 'acked', handler_ms = held.ms,
    delivered_at = (SELECT min(leased_at) FROM batch)
FROM held
WHERE message_id = held.id AND lease_token = :token
RETURNING 1;

-- name: note_handled
-- The function json_patch would do the same, but its time grows with the square of the number of ids.
UPDATE duequeue_stream_batch
SET handler_ms = (
        SELECT json_group_object(id, ms)
        FROM (
            SELECT handled.key AS id, max(handled.value) AS ms
            FROM (
                SELECT key, value FROM json_each(coalesce(handler_ms, '{}'))
                UNION ALL
                SELECT key, value FROM json_each(:handler_ms)
            ) AS handled
            GROUP BY handled.key
        )
    )
WHERE
    kind_id = :kind_id AND consumer = :consumer AND sequence = :sequence
    AND :id IN (SELECT listed.value FROM json_each(ids) AS listed);

-- name: slice_lengths
-- The length of a payload is known without reading it, and is not looked up at all while no page can
-- be too large.
SELECT json_group_array(length)
FROM (
    SELECT
        CASE
            WHEN batch.longest_payload > :page_bytes / :page_rows
                THEN coalesce(
                    (
                        SELECT length(payload) FROM duequeue_message AS message
                        WHERE message.id = listed.value
                    ),
                    0
                )
            ELSE 0
        END AS length
    FROM duequeue_stream_batch AS batch
    CROSS JOIN json_each(batch.ids) AS listed
    WHERE
        batch.kind_id = :kind_id AND batch.consumer = :consumer
        AND batch.sequence = :sequence AND batch.slice = :slice
    ORDER BY listed.key
);

-- name: read_slice
SELECT
    key, CASE WHEN :with_payload THEN payload END, headers, asked_at, due_at, attempt, created_at,
    updated_at, NULL AS leased_until, id
FROM duequeue_message
WHERE id IN (
    SELECT listed.value FROM duequeue_stream_batch, json_each(ids) AS listed
    WHERE
        kind_id = :kind_id AND consumer = :consumer AND sequence = :sequence AND slice = :slice
        AND listed.key >= :first AND listed.key < :last
) AND lease_token = :token;

-- name: read_messages
SELECT
    key, CASE WHEN :with_payload THEN payload END, headers, asked_at, due_at, attempt, created_at,
    updated_at, nullif(leased_until, -62135596800000)
FROM duequeue_message
WHERE
    kind_id = :kind_id AND id >= :first AND id < :last
    AND (:key_from IS NULL OR key >= :key_from)
    AND (:key_before IS NULL OR key < :key_before)
    AND (:due_from IS NULL OR asked_at >= :due_from)
    AND (:due_to IS NULL OR asked_at <= :due_to)
    AND (:deliver_from IS NULL OR due_at >= :deliver_from)
    AND (:deliver_to IS NULL OR due_at <= :deliver_to)
    AND (:leased_from IS NULL OR leased_until >= :leased_from)
    AND (:leased_to IS NULL OR leased_until <= :leased_to);

-- name: select_messages
-- This is read_messages for given keys, which an index finds.
SELECT
    key, CASE WHEN :with_payload THEN payload END, headers, asked_at, due_at, attempt, created_at,
    updated_at, nullif(leased_until, -62135596800000)
FROM duequeue_message
WHERE
    kind_id = :kind_id AND key IN (SELECT value FROM json_each(:keys))
    AND (:key_from IS NULL OR key >= :key_from)
    AND (:key_before IS NULL OR key < :key_before)
    AND (:due_from IS NULL OR asked_at >= :due_from)
    AND (:due_to IS NULL OR asked_at <= :due_to)
    AND (:deliver_from IS NULL OR due_at >= :deliver_from)
    AND (:deliver_to IS NULL OR due_at <= :deliver_to)
    AND (:leased_from IS NULL OR leased_until >= :leased_from)
    AND (:leased_to IS NULL OR leased_until <= :leased_to);
