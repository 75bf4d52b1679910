-- The queries for whole batches on PostgreSQL. The first lines of the store's queries.sql say what they
-- may contain.

-- name: merge_messages
-- This is offer_messages for a whole batch, but it returns only the numbers of created and updated
-- messages. The batch is sorted by key, and its rows are locked in that order. With look_first, rows
-- that would be ignored are left out before they are locked, so that a batch with few changes is
-- mostly read and not written.
WITH merged AS (
    INSERT INTO duequeue_message AS stored
        (kind_id, key, payload, headers, due_at, asked_at, created_at, replaced_attempts)
    SELECT
        :kind_id, key, payload, headers, due_at, due_at, :now, CASE WHEN NOT replace THEN 0 END
    FROM unnest(
        CAST(:key AS text []), CAST(:payload AS bytea []), CAST(:due_at AS bigint []),
        CAST(:headers AS text []), CAST(:replace AS boolean [])
    ) AS offered (key, payload, due_at, headers, replace)
    WHERE NOT :look_first OR (
        SELECT known.id FROM duequeue_message AS known
        WHERE
            known.key = offered.key AND known.kind_id + 0 = :kind_id
            AND (
                NOT offered.replace
                OR (
                    known.payload = offered.payload AND known.asked_at = offered.due_at
                    AND known.expires_at IS NULL
                )
            )
    ) IS NULL
    ON CONFLICT (kind_id, key) DO UPDATE
    SET payload = excluded.payload, due_at = excluded.due_at, asked_at = excluded.asked_at,
        headers = excluded.headers, expires_at = NULL, attempt = 0, updated_at = :now,
        leased_until = -62135596800000, lease_token = 0
--h         , replaced_asked_at = stored.asked_at, replaced_attempts = stored.attempt
    WHERE
        excluded.replaced_attempts IS NULL
        AND (
            stored.payload != excluded.payload OR stored.asked_at != excluded.asked_at
            OR stored.expires_at IS NOT NULL
        )
    RETURNING updated_at IS NULL AS created
--h     , key, replaced_asked_at, replaced_attempts
)
--h , kept AS (
--h     INSERT INTO duequeue_history (kind_id, key, asked_at, settled_at, attempts, outcome)
--h     SELECT :kind_id, key, replaced_asked_at, :now, replaced_attempts, 'replaced'
--h     FROM merged WHERE NOT created
--h )
SELECT count(*) FILTER (WHERE created), count(*) FILTER (WHERE NOT created) FROM merged;

-- name: discard_staged
DELETE FROM duequeue_stage
WHERE writer = :writer AND batch = :batch AND part = ANY(CAST(:part AS bigint []));

-- name: merge_staged
-- This is offer_messages for staged rows, and only for those of the given parts, because another part
-- may be committed meanwhile. If several parts have the same key, the last one with replace counts, or
-- the first one if none has replace. Only the numbers of created and updated messages are returned.
WITH merged AS (
    INSERT INTO duequeue_message AS stored
        (kind_id, key, payload, headers, due_at, asked_at, created_at, replaced_attempts)
    SELECT
        :kind_id, key, payload, headers, due_at, due_at, :now, CASE WHEN NOT replace THEN 0 END
    FROM (
        SELECT DISTINCT ON (key) key, payload, headers, due_at, replace
        FROM duequeue_stage
        WHERE writer = :writer AND batch = :batch
            AND part = ANY(ARRAY(
                SELECT CAST(listed AS bigint)
                FROM json_array_elements_text(CAST(:parts AS json)) AS listed
            ))
        ORDER BY key, replace DESC, CASE WHEN replace THEN -part ELSE part END
    ) AS staged
    ORDER BY key
    ON CONFLICT (kind_id, key) DO UPDATE
    SET payload = excluded.payload, due_at = excluded.due_at, asked_at = excluded.asked_at,
        headers = excluded.headers, expires_at = NULL, attempt = 0, updated_at = :now,
        leased_until = -62135596800000, lease_token = 0
--h         , replaced_asked_at = stored.asked_at, replaced_attempts = stored.attempt
    WHERE
        excluded.replaced_attempts IS NULL
        AND (
            stored.payload != excluded.payload OR stored.asked_at != excluded.asked_at
            OR stored.expires_at IS NOT NULL
        )
    RETURNING updated_at IS NULL AS created
--h     , key, replaced_asked_at, replaced_attempts
)
--h , kept AS (
--h     INSERT INTO duequeue_history (kind_id, key, asked_at, settled_at, attempts, outcome)
--h     SELECT :kind_id, key, replaced_asked_at, :now, replaced_attempts, 'replaced'
--h     FROM merged WHERE NOT created
--h )
SELECT count(*) FILTER (WHERE created), count(*) FILTER (WHERE NOT created) FROM merged;

-- name: take_write_place
-- The lock belongs to the connection and ends with it. The first number only has to be ours.
SELECT place FROM generate_series(1, :most) AS place
WHERE pg_try_advisory_lock(CAST(603455129 + :kind_id AS integer), CAST(place AS integer))
LIMIT 1;

-- name: gather_stream_batch
-- This locks what is due and stores its ids, without sending them to the client. The next statement
-- leases it. Unlike a poll's claim, it waits for the disk, because a micro-batch that is in Spark's
-- log must not lose its leases in a crash of the server.
INSERT INTO duequeue_stream_batch (
    kind_id, consumer, sequence, slice, leased_at, leased_until, last_due_at, longest_payload, ids,
    unread
)
SELECT
    :kind_id, CAST(:consumer AS text), CAST(:sequence AS bigint), slice, :now,
    CAST(:until AS bigint), max(due_at), max(length), array_agg(id ORDER BY due_at, id),
    TRUE
FROM (
    SELECT
        due_at, id, length,
        (row_number() OVER (ORDER BY due_at, id) - 1) / CAST(:slice_size AS bigint) AS slice
    FROM (
        SELECT due_at, id, octet_length(payload) AS length FROM duequeue_message
        WHERE kind_id = :kind_id AND due_at <= :due_until AND id <= :last_id
            AND (due_at, id) > (:after_due, :after_id) AND leased_until <= :now
        ORDER BY due_at, id
        LIMIT :limit
        FOR UPDATE SKIP LOCKED
    ) AS due
) AS numbered
GROUP BY slice
RETURNING last_due_at, ids[cardinality(ids)], cardinality(ids);

-- name: lease_gathered
UPDATE duequeue_message
SET leased_until = :until, lease_token = :token, attempt = least(attempt, 2147483646) + 1
WHERE id = ANY(ARRAY(
    SELECT unnest(ids) FROM duequeue_stream_batch
    WHERE kind_id = :kind_id AND consumer = :consumer AND sequence = :sequence
));

-- name: list_stream_batches
SELECT sequence, count(*), CAST(sum(cardinality(ids)) AS bigint)
FROM duequeue_stream_batch WHERE kind_id = :kind_id AND consumer = :consumer
GROUP BY sequence
ORDER BY sequence;

-- name: extend_stream_batch
-- A message that another transaction has locked, perhaps to change it, is extended the next time. To
-- wait for it could cost the leases of all others.
UPDATE duequeue_message SET leased_until = :until
WHERE id = ANY(ARRAY(
    SELECT id FROM duequeue_message
    WHERE id = ANY(ARRAY(
        SELECT unnest(ids) FROM duequeue_stream_batch
        WHERE kind_id = :kind_id AND consumer = :consumer AND sequence = :sequence
    )) AND lease_token = :token
    FOR UPDATE SKIP LOCKED
));

-- name: remove_stream_batch
-- The empty text keeps the planner from walking the whole index to get the keys in order.
--h WITH gone AS (
DELETE FROM duequeue_message AS held
USING (
    SELECT id FROM duequeue_message
    WHERE id = ANY(ARRAY(
        SELECT unnest(ids) FROM duequeue_stream_batch
        WHERE kind_id = :kind_id AND consumer = :consumer AND sequence = :sequence
    )) AND lease_token = :token
    ORDER BY key || ''
) AS leased
WHERE held.id = ANY(ARRAY[leased.id]) AND held.lease_token = :token
--h RETURNING held.id, held.kind_id, held.key, held.asked_at, held.attempt
--h ),
--h kept AS (
--h     INSERT INTO duequeue_history
--h         (kind_id, key, asked_at, delivered_at, settled_at, attempts, outcome, handler_ms)
--h     SELECT
--h         gone.kind_id, gone.key, gone.asked_at,
--h         (
--h             SELECT min(leased_at) FROM duequeue_stream_batch
--h             WHERE kind_id = :kind_id AND consumer = :consumer AND sequence = :sequence
--h         ),
--h         :now, gone.attempt, 'acked',
--h         CAST((
--h             SELECT jsonb_object_agg(handled.id, handled.ms)
--h             FROM duequeue_stream_batch AS batch
--h             CROSS JOIN LATERAL jsonb_each(batch.handler_ms) AS handled (id, ms)
--h             WHERE
--h                 batch.kind_id = :kind_id AND batch.consumer = :consumer
--h                 AND batch.sequence = :sequence
--h         ) ->> CAST(gone.id AS text) AS bigint)
--h     FROM gone
--h )
--h SELECT count(*) FROM gone
;

-- name: note_handled
-- Each task of Spark handles messages of one slice, so no two tasks write to the same row.
UPDATE duequeue_stream_batch
SET handler_ms = coalesce(handler_ms, CAST('{}' AS jsonb)) || CAST(:handler_ms AS jsonb)
WHERE
    kind_id = :kind_id AND consumer = :consumer AND sequence = :sequence
    AND :id = ANY(ids);

-- name: slice_lengths
-- The length of a payload is known without reading it, and is not looked up at all while no page can
-- be too large. A join might be run the other way round, and read every message.
SELECT CAST(array_to_json(
    CASE
        WHEN batch.longest_payload > CAST(:page_bytes AS bigint) / CAST(:page_rows AS bigint)
            THEN ARRAY(
                SELECT
                    coalesce(
                        (
                            SELECT octet_length(payload) FROM duequeue_message AS message
                            WHERE message.id = listed.id
                        ),
                        0
                    )
                FROM unnest(batch.ids) WITH ORDINALITY AS listed (id, place)
                ORDER BY listed.place
            )
        ELSE array_fill(0, ARRAY[cardinality(batch.ids)])
    END
) AS text)
FROM duequeue_stream_batch AS batch
WHERE
    batch.kind_id = :kind_id AND batch.consumer = :consumer
    AND batch.sequence = :sequence AND batch.slice = :slice;

-- name: read_slice
SELECT
    key, CASE WHEN :with_payload THEN payload END, headers, asked_at, due_at, attempt, created_at,
    updated_at, CAST(NULL AS bigint) AS leased_until, id
FROM duequeue_message
WHERE id = ANY(ARRAY(
    SELECT unnest(ids[CAST(:first AS integer) + 1 : CAST(:last AS integer)])
    FROM duequeue_stream_batch
    WHERE
        kind_id = :kind_id AND consumer = :consumer AND sequence = :sequence AND slice = :slice
)) AND lease_token = :token;

-- name: measure_messages
-- The result is in pages, because a snapshot is read by ranges of the table, each of them once.
SELECT
    CAST(0 AS bigint),
    pg_relation_size('duequeue_message') / CAST(current_setting('block_size') AS bigint);

-- name: read_messages
-- Values that the client can do without are sent as NULL, which saves time. Conditions that are not
-- asked for cost nothing, since the values are part of the text that the server plans.
SELECT
    key, CASE WHEN :with_payload THEN payload END, headers, asked_at,
    nullif(due_at, asked_at), nullif(attempt, 0), created_at, updated_at,
    nullif(leased_until, -62135596800000)
FROM duequeue_message
WHERE
    kind_id = :kind_id
    AND ctid >= CAST(concat('(', CAST(:first AS bigint), ',0)') AS tid)
    AND ctid < CAST(concat('(', CAST(:last AS bigint), ',0)') AS tid)
    AND (CAST(:key_from AS text) IS NULL OR key >= :key_from)
    AND (CAST(:key_before AS text) IS NULL OR key < :key_before)
    AND (CAST(:due_from AS bigint) IS NULL OR asked_at >= :due_from)
    AND (CAST(:due_to AS bigint) IS NULL OR asked_at <= :due_to)
    AND (CAST(:deliver_from AS bigint) IS NULL OR due_at >= :deliver_from)
    AND (CAST(:deliver_to AS bigint) IS NULL OR due_at <= :deliver_to)
    AND (CAST(:leased_from AS bigint) IS NULL OR leased_until >= :leased_from)
    AND (CAST(:leased_to AS bigint) IS NULL OR leased_until <= :leased_to);

-- name: select_messages
-- This is read_messages for few messages, which an index finds. The index of due times is left out
-- of the choice if there are keys or a prefix, because it would find the whole queue.
SELECT
    key, CASE WHEN :with_payload THEN payload END, headers, asked_at,
    nullif(due_at, asked_at), nullif(attempt, 0), created_at, updated_at,
    nullif(leased_until, -62135596800000)
FROM duequeue_message
WHERE
    kind_id + 0 = :kind_id
    AND (
        CAST(:keys AS text []) IS NOT NULL OR CAST(:key_from AS text) IS NOT NULL
        OR kind_id = :kind_id
    )
    AND (CAST(:keys AS text []) IS NULL OR key = ANY(CAST(:keys AS text [])))
    AND (CAST(:key_from AS text) IS NULL OR key >= :key_from)
    AND (CAST(:key_before AS text) IS NULL OR key < :key_before)
    AND (CAST(:due_from AS bigint) IS NULL OR asked_at >= :due_from)
    AND (CAST(:due_to AS bigint) IS NULL OR asked_at <= :due_to)
    AND (CAST(:deliver_from AS bigint) IS NULL OR due_at >= :deliver_from)
    AND (CAST(:deliver_to AS bigint) IS NULL OR due_at <= :deliver_to)
    AND (CAST(:leased_from AS bigint) IS NULL OR leased_until >= :leased_from)
    AND (CAST(:leased_to AS bigint) IS NULL OR leased_until <= :leased_to);
