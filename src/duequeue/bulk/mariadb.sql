-- The queries for whole batches on MariaDB and MySQL. The first lines of the store's queries.sql say what
-- they may contain.

-- name: merge_messages
-- on mysql: merge_messages_on_mysql
-- locks first: lock_offered
-- This is offer_messages, but messages that are offered in bulk do not expire, and only the numbers of
-- created and updated messages are returned. There is no look_first here, because InnoDB keeps the locks
-- of rows in memory and does not write a row that stays as it is.
INSERT INTO duequeue_message
    (
        kind_id, `key`, payload, headers, due_at, asked_at, created_at, replaced_attempts,
        lease_token
    )
VALUES /* each */ (
    :kind_id, :key, :payload, :headers, :due_at, :due_at, :now, IF(:replace, NULL, 0), :mark
) /* end */
ON DUPLICATE KEY UPDATE
    lease_token = IF(
        VALUES(replaced_attempts) IS NULL AND (
            duequeue_message.payload != VALUES(payload) OR duequeue_message.asked_at != VALUES(asked_at)
            OR duequeue_message.expires_at IS NOT NULL
        ),
        VALUES(lease_token), duequeue_message.lease_token
    ),
--h     replaced_asked_at = IF(duequeue_message.lease_token = VALUES(lease_token), duequeue_message.asked_at, duequeue_message.replaced_asked_at),
--h     replaced_attempts = IF(duequeue_message.lease_token = VALUES(lease_token), duequeue_message.attempt, duequeue_message.replaced_attempts),
    payload = IF(duequeue_message.lease_token = VALUES(lease_token), VALUES(payload), duequeue_message.payload),
    headers = IF(duequeue_message.lease_token = VALUES(lease_token), VALUES(headers), duequeue_message.headers),
    due_at = IF(duequeue_message.lease_token = VALUES(lease_token), VALUES(due_at), duequeue_message.due_at),
    asked_at = IF(duequeue_message.lease_token = VALUES(lease_token), VALUES(asked_at), duequeue_message.asked_at),
    expires_at = IF(duequeue_message.lease_token = VALUES(lease_token), NULL, duequeue_message.expires_at),
    attempt = IF(duequeue_message.lease_token = VALUES(lease_token), 0, duequeue_message.attempt),
    updated_at = IF(duequeue_message.lease_token = VALUES(lease_token), VALUES(created_at), duequeue_message.updated_at),
    leased_until = IF(duequeue_message.lease_token = VALUES(lease_token), -62135596800000, duequeue_message.leased_until);
--h INSERT INTO duequeue_history (kind_id, `key`, asked_at, settled_at, attempts, outcome)
--h SELECT kind_id, `key`, replaced_asked_at, :now, replaced_attempts, 'replaced'
--h FROM duequeue_message FORCE INDEX (duequeue_message_key)
--h WHERE
--h     `key` IN (:key) AND kind_id = :kind_id AND lease_token = :mark
--h     AND updated_at IS NOT NULL;
SELECT COUNT(IF(updated_at IS NULL, 1, NULL)) AS created, COUNT(updated_at) AS updated
FROM duequeue_message FORCE INDEX (duequeue_message_key)
WHERE `key` IN (:key) AND kind_id = :kind_id AND lease_token = :mark;

-- name: merge_messages_on_mysql
-- This is merge_messages with a name for the new row, which MySQL has in the place of VALUES().
INSERT INTO duequeue_message
    (
        kind_id, `key`, payload, headers, due_at, asked_at, created_at, replaced_attempts,
        lease_token
    )
VALUES /* each */ (
    :kind_id, :key, :payload, :headers, :due_at, :due_at, :now, IF(:replace, NULL, 0), :mark
) /* end */
AS new
ON DUPLICATE KEY UPDATE
    lease_token = IF(
        new.replaced_attempts IS NULL AND (
            duequeue_message.payload != new.payload OR duequeue_message.asked_at != new.asked_at
            OR duequeue_message.expires_at IS NOT NULL
        ),
        new.lease_token, duequeue_message.lease_token
    ),
--h     replaced_asked_at = IF(duequeue_message.lease_token = new.lease_token, duequeue_message.asked_at, duequeue_message.replaced_asked_at),
--h     replaced_attempts = IF(duequeue_message.lease_token = new.lease_token, duequeue_message.attempt, duequeue_message.replaced_attempts),
    payload = IF(duequeue_message.lease_token = new.lease_token, new.payload, duequeue_message.payload),
    headers = IF(duequeue_message.lease_token = new.lease_token, new.headers, duequeue_message.headers),
    due_at = IF(duequeue_message.lease_token = new.lease_token, new.due_at, duequeue_message.due_at),
    asked_at = IF(duequeue_message.lease_token = new.lease_token, new.asked_at, duequeue_message.asked_at),
    expires_at = IF(duequeue_message.lease_token = new.lease_token, NULL, duequeue_message.expires_at),
    attempt = IF(duequeue_message.lease_token = new.lease_token, 0, duequeue_message.attempt),
    updated_at = IF(duequeue_message.lease_token = new.lease_token, new.created_at, duequeue_message.updated_at),
    leased_until = IF(duequeue_message.lease_token = new.lease_token, -62135596800000, duequeue_message.leased_until);
--h INSERT INTO duequeue_history (kind_id, `key`, asked_at, settled_at, attempts, outcome)
--h SELECT kind_id, `key`, replaced_asked_at, :now, replaced_attempts, 'replaced'
--h FROM duequeue_message FORCE INDEX (duequeue_message_key)
--h WHERE
--h     `key` IN (:key) AND kind_id = :kind_id AND lease_token = :mark
--h     AND updated_at IS NOT NULL;
SELECT COUNT(IF(updated_at IS NULL, 1, NULL)) AS created, COUNT(updated_at) AS updated
FROM duequeue_message FORCE INDEX (duequeue_message_key)
WHERE `key` IN (:key) AND kind_id = :kind_id AND lease_token = :mark;

-- name: list_staged
SELECT part, COUNT(*) FROM duequeue_stage FORCE INDEX (PRIMARY)
WHERE writer = :writer AND batch = :batch
GROUP BY part;

-- name: discard_staged
DELETE stage FROM duequeue_stage AS stage FORCE INDEX (PRIMARY)
WHERE writer = :writer AND batch = :batch AND part IN (:part);

-- name: discard_doubles
-- If several of the given parts have the same key, the last one with replace counts, or the first one if
-- none has replace. The others are deleted before the rest is merged.
DELETE stage
FROM (
    SELECT ranked.part, ranked.position FROM (
        SELECT
            offered.part, offered.position,
            ROW_NUMBER() OVER (
                PARTITION BY offered.`key`
                ORDER BY offered.`replace` DESC, IF(offered.`replace`, -offered.part, offered.part)
            ) AS place
        FROM JSON_TABLE(
            CONVERT(:parts USING utf8mb4), '$[*]' COLUMNS (part bigint PATH '$')
        ) AS wanted
        STRAIGHT_JOIN duequeue_stage AS offered FORCE INDEX (PRIMARY)
            ON offered.writer = :writer AND offered.batch = :batch AND offered.part = wanted.part
    ) AS ranked
    WHERE ranked.place > 1
) AS doubled
STRAIGHT_JOIN duequeue_stage AS stage FORCE INDEX (PRIMARY)
    ON stage.writer = :writer AND stage.batch = :batch
    AND stage.part = doubled.part AND stage.position = doubled.position;

-- name: merge_staged_range
-- This is merge_messages for staged rows, but only for a range of one part. While an INSERT with a
-- SELECT runs, no other process can draw an id on a server with the default setting, so each is short.
INSERT INTO duequeue_message
    (
        kind_id, `key`, payload, headers, due_at, asked_at, created_at, replaced_attempts,
        lease_token
    )
SELECT kind_id, `key`, payload, headers, due_at, asked_at, created_at, replaced_attempts, lease_token
FROM (
    SELECT
        :kind_id AS kind_id, `key`, payload, headers, due_at, due_at AS asked_at, :now AS created_at,
        IF(`replace`, NULL, 0) AS replaced_attempts, :mark AS lease_token
    FROM duequeue_stage FORCE INDEX (PRIMARY)
    WHERE
        writer = :writer AND batch = :batch AND part = :part
        AND position >= :first AND position < :last
) new
ON DUPLICATE KEY UPDATE
    duequeue_message.lease_token = IF(
        new.replaced_attempts IS NULL AND (
            duequeue_message.payload != new.payload OR duequeue_message.asked_at != new.asked_at
            OR duequeue_message.expires_at IS NOT NULL
        ),
        new.lease_token, duequeue_message.lease_token
    ),
--h     duequeue_message.replaced_asked_at = IF(duequeue_message.lease_token = new.lease_token, duequeue_message.asked_at, duequeue_message.replaced_asked_at),
--h     duequeue_message.replaced_attempts = IF(duequeue_message.lease_token = new.lease_token, duequeue_message.attempt, duequeue_message.replaced_attempts),
    duequeue_message.payload = IF(duequeue_message.lease_token = new.lease_token, new.payload, duequeue_message.payload),
    duequeue_message.headers = IF(duequeue_message.lease_token = new.lease_token, new.headers, duequeue_message.headers),
    duequeue_message.due_at = IF(duequeue_message.lease_token = new.lease_token, new.due_at, duequeue_message.due_at),
    duequeue_message.asked_at = IF(duequeue_message.lease_token = new.lease_token, new.asked_at, duequeue_message.asked_at),
    duequeue_message.expires_at = IF(duequeue_message.lease_token = new.lease_token, NULL, duequeue_message.expires_at),
    duequeue_message.attempt = IF(duequeue_message.lease_token = new.lease_token, 0, duequeue_message.attempt),
    duequeue_message.updated_at = IF(duequeue_message.lease_token = new.lease_token, new.created_at, duequeue_message.updated_at),
    duequeue_message.leased_until = IF(duequeue_message.lease_token = new.lease_token, -62135596800000, duequeue_message.leased_until);
--h INSERT INTO duequeue_history (kind_id, `key`, asked_at, settled_at, attempts, outcome)
--h SELECT message.kind_id, message.`key`, message.replaced_asked_at, :now, message.replaced_attempts, 'replaced'
--h FROM duequeue_stage AS stage FORCE INDEX (PRIMARY)
--h STRAIGHT_JOIN duequeue_message AS message FORCE INDEX (duequeue_message_key)
--h     ON message.`key` = stage.`key` AND message.kind_id = :kind_id
--h WHERE
--h     stage.writer = :writer AND stage.batch = :batch AND stage.part = :part
--h     AND stage.position >= :first AND stage.position < :last
--h     AND message.lease_token = :mark AND message.updated_at IS NOT NULL;
SELECT COUNT(IF(message.updated_at IS NULL, 1, NULL)) AS created, COUNT(message.updated_at) AS updated
FROM duequeue_stage AS stage FORCE INDEX (PRIMARY)
STRAIGHT_JOIN duequeue_message AS message FORCE INDEX (duequeue_message_key)
    ON message.`key` = stage.`key` AND message.kind_id = :kind_id
WHERE
    stage.writer = :writer AND stage.batch = :batch AND stage.part = :part
    AND stage.position >= :first AND stage.position < :last
    AND message.lease_token = :mark;

-- name: empty_stage
-- This also deletes what failed tries of earlier batches left behind.
DELETE stage FROM duequeue_stage AS stage FORCE INDEX (PRIMARY)
WHERE writer = :writer AND batch <= :batch;

-- name: open_commit
-- This changes nothing if this batch or a later one is merged already. Another process that merges
-- the same batch at the same time waits here.
INSERT INTO duequeue_stream_commit (kind_id, app, batch, committed_at)
VALUES (:kind_id, :app, :batch, :now)
ON DUPLICATE KEY UPDATE
    committed_at = IF(batch < :batch, :now, committed_at), batch = GREATEST(batch, :batch);

-- name: close_commit
UPDATE duequeue_stream_commit FORCE INDEX (PRIMARY)
SET created = :created, updated = :updated, ignored = :ignored
WHERE kind_id = :kind_id AND app = :app;

-- name: take_write_place
-- The lock belongs to the connection and ends with it. Its name belongs to the whole server. The list
-- is read only up to the first place that is free.
WITH RECURSIVE places (place) AS (
    SELECT 1
    UNION ALL
    SELECT place + 1 FROM places WHERE place < :most
)
SELECT place FROM places
WHERE
    GET_LOCK(
        CONCAT('duequeue.write.', LEFT(SHA2(DATABASE(), 256), 16), '.', :kind_id, '.', place), 0
    ) = 1
LIMIT 1;

-- name: add_to_commit
UPDATE duequeue_stream_commit FORCE INDEX (PRIMARY)
SET
    created = created + :created, updated = updated + :updated, ignored = ignored + :ignored,
    query = :query, digest = :digest
WHERE kind_id = :kind_id AND app = :app;

-- name: forget_commit
DELETE stored FROM duequeue_stream_commit AS stored FORCE INDEX (PRIMARY)
WHERE kind_id = :kind_id AND app = :app;

-- name: forget_stale_commits
-- Here and in forget_stale_batches, rows are found without locks, so that no other stream is waited for.
DELETE stale
FROM (
    SELECT app FROM duequeue_stream_commit
    WHERE kind_id = :kind_id AND batch = :batch AND committed_at < :before
    LIMIT 1000000
) AS old
STRAIGHT_JOIN duequeue_stream_commit AS stale FORCE INDEX (PRIMARY)
    ON stale.kind_id = :kind_id AND stale.app = old.app
WHERE stale.batch = :batch AND stale.committed_at < :before;

-- name: name_database
SELECT DATABASE();

-- name: find_waiting
-- The numbers of the connections that hold these locks; see alerts.py.
SELECT /* each */ IS_USED_LOCK(:name) /* end */;

-- name: end_sleep
KILL QUERY :number;

-- name: measure_backlog
SELECT COUNT(*), MIN(due_at) FROM (
    SELECT due_at FROM duequeue_message FORCE INDEX (duequeue_message_due)
    WHERE kind_id = :kind_id AND due_at <= :due_until AND leased_until <= :now
    ORDER BY due_at, id
    LIMIT :most
) AS waiting;

-- name: find_stream_batch
-- This locks what is due, as a claim does. The ids pass through the client, which stores them in slices.
SELECT due_at, id, LENGTH(payload) AS length
FROM duequeue_message FORCE INDEX (duequeue_message_due)
WHERE
    (
        kind_id = :kind_id AND due_at = :after_due AND id > :after_id
        OR kind_id = :kind_id AND due_at > :after_due
        AND due_at <= GREATEST(:due_until, :after_due + 1)
    )
    AND due_at + 0 <= :due_until AND id <= :last_id AND leased_until <= :now
ORDER BY due_at, id
LIMIT :limit
FOR UPDATE SKIP LOCKED;

-- name: add_stream_slices
INSERT INTO duequeue_stream_batch
    (
        kind_id, consumer, sequence, slice, leased_at, leased_until, last_due_at,
        longest_payload, ids, unread
    )
VALUES /* each */ (
    :kind_id, :consumer, :sequence, :slice, :now, :until, :last_due_at, :longest_payload, :ids,
    TRUE
) /* end */;

-- name: lease_gathered
-- Here and below, the messages of a batch are visited in the order of their ids, as acks do.
UPDATE (
    SELECT listed.id
    FROM duequeue_stream_batch AS batch
    STRAIGHT_JOIN JSON_TABLE(batch.ids, '$[*]' COLUMNS (id bigint PATH '$')) AS listed
    WHERE
        batch.kind_id = :kind_id AND batch.consumer = :consumer AND batch.sequence = :sequence
    ORDER BY listed.id LIMIT 1000000000
) AS leased
STRAIGHT_JOIN duequeue_message AS message FORCE INDEX (PRIMARY) ON message.id = leased.id
SET message.leased_until = :until, message.lease_token = :token,
    message.attempt = LEAST(message.attempt, 2147483646) + 1;

-- name: list_stream_batches
SELECT sequence, COUNT(*), CAST(SUM(JSON_LENGTH(ids)) AS SIGNED)
FROM duequeue_stream_batch WHERE kind_id = :kind_id AND consumer = :consumer
GROUP BY sequence
ORDER BY sequence;

-- name: extend_batch_leases
-- A message that another transaction has locked, perhaps to change it, is extended the next time.
-- Waiting for it could cost the leases of all others.
SELECT message.id
FROM (
    SELECT listed.id
    FROM duequeue_stream_batch AS batch
    STRAIGHT_JOIN JSON_TABLE(batch.ids, '$[*]' COLUMNS (id bigint PATH '$')) AS listed
    WHERE
        batch.kind_id = :kind_id AND batch.consumer = :consumer AND batch.sequence = :sequence
    ORDER BY listed.id LIMIT 1000000000
) AS leased
STRAIGHT_JOIN duequeue_message AS message FORCE INDEX (PRIMARY) ON message.id = leased.id
WHERE message.lease_token = :token
FOR UPDATE SKIP LOCKED;
UPDATE duequeue_message FORCE INDEX (PRIMARY) SET leased_until = :until WHERE id IN (:found);

-- name: note_stream_lease
UPDATE duequeue_stream_batch FORCE INDEX (PRIMARY) SET leased_until = :until
WHERE kind_id = :kind_id AND consumer = :consumer AND sequence = :sequence;

-- name: remove_stream_batch
DELETE message
FROM (
    SELECT listed.id
    FROM duequeue_stream_batch AS batch
    STRAIGHT_JOIN JSON_TABLE(batch.ids, '$[*]' COLUMNS (id bigint PATH '$')) AS listed
    WHERE
        batch.kind_id = :kind_id AND batch.consumer = :consumer AND batch.sequence = :sequence
    ORDER BY listed.id LIMIT 1000000000
) AS leased
STRAIGHT_JOIN duequeue_message AS message FORCE INDEX (PRIMARY) ON message.id = leased.id
WHERE message.lease_token = :token;

-- name: remove_stream_batch_with_history
-- The messages are locked before they are copied, and what is locked is counted. How long their
-- handlers took is stored as a list of pairs, and the longest time counts.
SELECT COUNT(*) FROM (
    SELECT message.id
    FROM (
        SELECT listed.id
        FROM duequeue_stream_batch AS batch
        STRAIGHT_JOIN JSON_TABLE(batch.ids, '$[*]' COLUMNS (id bigint PATH '$')) AS listed
        WHERE
            batch.kind_id = :kind_id AND batch.consumer = :consumer
            AND batch.sequence = :sequence
        ORDER BY listed.id LIMIT 1000000000
    ) AS leased
    STRAIGHT_JOIN duequeue_message AS message FORCE INDEX (PRIMARY) ON message.id = leased.id
    WHERE message.lease_token = :token
    FOR UPDATE
) AS held;
INSERT INTO duequeue_history
    (kind_id, `key`, asked_at, delivered_at, settled_at, attempts, outcome, handler_ms)
SELECT
    message.kind_id, message.`key`, message.asked_at, batch.leased_at, :now, message.attempt, 'acked',
    handled.ms
FROM duequeue_stream_batch AS batch
STRAIGHT_JOIN JSON_TABLE(batch.ids, '$[*]' COLUMNS (id bigint PATH '$')) AS listed
STRAIGHT_JOIN duequeue_message AS message FORCE INDEX (PRIMARY) ON message.id = listed.id
LEFT JOIN (
    SELECT noted.id, MAX(noted.ms) AS ms
    FROM duequeue_stream_batch AS handling
    STRAIGHT_JOIN JSON_TABLE(
        CONCAT('[', handling.handler_ms, ']'), '$[*]'
        COLUMNS (id bigint PATH '$[0]', ms bigint PATH '$[1]')
    ) AS noted
    WHERE
        handling.kind_id = :kind_id AND handling.consumer = :consumer
        AND handling.sequence = :sequence AND handling.handler_ms IS NOT NULL
    GROUP BY noted.id
) AS handled ON handled.id = message.id
WHERE
    batch.kind_id = :kind_id AND batch.consumer = :consumer AND batch.sequence = :sequence
    AND message.lease_token = :token;
DELETE message
FROM duequeue_stream_batch AS batch
STRAIGHT_JOIN JSON_TABLE(batch.ids, '$[*]' COLUMNS (id bigint PATH '$')) AS listed
STRAIGHT_JOIN duequeue_message AS message FORCE INDEX (PRIMARY) ON message.id = listed.id
WHERE
    batch.kind_id = :kind_id AND batch.consumer = :consumer AND batch.sequence = :sequence
    AND message.lease_token = :token;

-- name: add_handler_times
-- Each task of Spark handles messages of one slice, so no two tasks write to the same row. The pairs
-- of an id and a time are appended, since the time to merge objects grows with the square of their size.
UPDATE duequeue_stream_batch FORCE INDEX (PRIMARY)
SET handler_ms = CONCAT_WS(',', handler_ms, :times)
WHERE
    kind_id = :kind_id AND consumer = :consumer AND sequence = :sequence
    AND JSON_CONTAINS(ids, CAST(:id AS char));

-- name: note_slice_read
UPDATE duequeue_stream_batch FORCE INDEX (PRIMARY) SET unread = FALSE
WHERE kind_id = :kind_id AND consumer = :consumer AND sequence = :sequence AND slice = :slice;

-- name: forget_stream_batch
DELETE batch FROM duequeue_stream_batch AS batch FORCE INDEX (PRIMARY)
WHERE kind_id = :kind_id AND consumer = :consumer AND sequence = :sequence;

-- name: forget_stale_batches
-- These batches belong to consumers that never came back.
DELETE stale
FROM (
    SELECT consumer, sequence, slice FROM duequeue_stream_batch
    WHERE kind_id = :kind_id AND leased_until < :before
    LIMIT 1000000
) AS old
STRAIGHT_JOIN duequeue_stream_batch AS stale FORCE INDEX (PRIMARY)
    ON stale.kind_id = :kind_id AND stale.consumer = old.consumer
    AND stale.sequence = old.sequence AND stale.slice = old.slice
WHERE stale.leased_until < :before;

-- name: list_slice_lengths
-- The messages are not looked up at all while no page can be too large.
SELECT
    IF(
        batch.longest_payload > :page_bytes DIV :page_rows,
        COALESCE(
            (
                SELECT LENGTH(message.payload) FROM duequeue_message AS message
                WHERE message.id = listed.id
            ),
            0
        ),
        0
    ) AS length
FROM duequeue_stream_batch AS batch
STRAIGHT_JOIN JSON_TABLE(
    batch.ids, '$[*]' COLUMNS (place FOR ORDINALITY, id bigint PATH '$')
) AS listed
WHERE
    batch.kind_id = :kind_id AND batch.consumer = :consumer
    AND batch.sequence = :sequence AND batch.slice = :slice
ORDER BY listed.place;

-- name: read_slice
SELECT
    message.`key`, IF(:with_payload, message.payload, NULL) AS payload, message.headers,
    message.asked_at, message.due_at, message.attempt, message.created_at, message.updated_at,
    NULL AS leased_until, message.id
FROM duequeue_stream_batch AS batch
STRAIGHT_JOIN JSON_TABLE(
    batch.ids, '$[*]' COLUMNS (place FOR ORDINALITY, id bigint PATH '$')
) AS listed
STRAIGHT_JOIN duequeue_message AS message FORCE INDEX (PRIMARY) ON message.id = listed.id
WHERE
    batch.kind_id = :kind_id AND batch.consumer = :consumer
    AND batch.sequence = :sequence AND batch.slice = :slice
    AND listed.place > :first AND listed.place <= :last
    AND message.lease_token = :token;

-- name: read_messages
-- This reads a page after an id. Values that the client can do without are sent as NULL, which saves
-- time. The last two columns are only for the place at which the next page begins.
SELECT
    `key`, IF(:with_payload, payload, NULL) AS payload, headers, asked_at,
    NULLIF(due_at, asked_at) AS deliver_at, NULLIF(attempt, 0) AS attempt, created_at, updated_at,
    NULLIF(leased_until, -62135596800000) AS leased_until, id, due_at
FROM duequeue_message FORCE INDEX (PRIMARY)
WHERE
    id > :after_id AND id < :last AND kind_id = :kind_id
    AND (:key_from IS NULL OR `key` >= :key_from)
    AND (:key_before IS NULL OR `key` < :key_before)
    AND (:due_from IS NULL OR asked_at >= :due_from)
    AND (:due_to IS NULL OR asked_at <= :due_to)
    AND (:deliver_from IS NULL OR due_at >= :deliver_from)
    AND (:deliver_to IS NULL OR due_at <= :deliver_to)
    AND (:leased_from IS NULL OR leased_until >= :leased_from)
    AND (:leased_to IS NULL OR leased_until <= :leased_to)
ORDER BY id
LIMIT :limit;

-- name: select_messages
-- This is read_messages for given keys, each of which is looked up.
SELECT
    `key`, IF(:with_payload, payload, NULL) AS payload, headers, asked_at,
    NULLIF(due_at, asked_at) AS deliver_at, NULLIF(attempt, 0) AS attempt, created_at, updated_at,
    NULLIF(leased_until, -62135596800000) AS leased_until, id, due_at
FROM duequeue_message FORCE INDEX (duequeue_message_key)
WHERE
    `key` IN (:key) AND kind_id = :kind_id
    AND (:key_from IS NULL OR `key` >= :key_from)
    AND (:key_before IS NULL OR `key` < :key_before)
    AND (:due_from IS NULL OR asked_at >= :due_from)
    AND (:due_to IS NULL OR asked_at <= :due_to)
    AND (:deliver_from IS NULL OR due_at >= :deliver_from)
    AND (:deliver_to IS NULL OR due_at <= :deliver_to)
    AND (:leased_from IS NULL OR leased_until >= :leased_from)
    AND (:leased_to IS NULL OR leased_until <= :leased_to);

-- name: read_messages_by_key
-- This is read_messages for a range of keys, and reads a page after a key.
SELECT
    `key`, IF(:with_payload, payload, NULL) AS payload, headers, asked_at,
    NULLIF(due_at, asked_at) AS deliver_at, NULLIF(attempt, 0) AS attempt, created_at, updated_at,
    NULLIF(leased_until, -62135596800000) AS leased_until, id, due_at
FROM duequeue_message FORCE INDEX (duequeue_message_key)
WHERE
    `key` > :after_key AND kind_id = :kind_id
    AND (:key_from IS NULL OR `key` >= :key_from)
    AND (:key_before IS NULL OR `key` < :key_before)
    AND (:due_from IS NULL OR asked_at >= :due_from)
    AND (:due_to IS NULL OR asked_at <= :due_to)
    AND (:deliver_from IS NULL OR due_at >= :deliver_from)
    AND (:deliver_to IS NULL OR due_at <= :deliver_to)
    AND (:leased_from IS NULL OR leased_until >= :leased_from)
    AND (:leased_to IS NULL OR leased_until <= :leased_to)
ORDER BY `key`
LIMIT :limit;

-- name: read_messages_by_due
-- This is read_messages for a range of due times, and reads a page after a due time and an id.
SELECT
    `key`, IF(:with_payload, payload, NULL) AS payload, headers, asked_at,
    NULLIF(due_at, asked_at) AS deliver_at, NULLIF(attempt, 0) AS attempt, created_at, updated_at,
    NULLIF(leased_until, -62135596800000) AS leased_until, id, due_at
FROM duequeue_message FORCE INDEX (duequeue_message_due)
WHERE
    (
        kind_id = :kind_id AND due_at = :after_due AND id > :after_id
        OR kind_id = :kind_id AND due_at > :after_due
    )
    AND (:key_from IS NULL OR `key` >= :key_from)
    AND (:key_before IS NULL OR `key` < :key_before)
    AND (:due_from IS NULL OR asked_at >= :due_from)
    AND (:due_to IS NULL OR asked_at <= :due_to)
    AND (:deliver_from IS NULL OR due_at >= :deliver_from)
    AND (:deliver_to IS NULL OR due_at <= :deliver_to)
    AND (:leased_from IS NULL OR leased_until >= :leased_from)
    AND (:leased_to IS NULL OR leased_until <= :leased_to)
ORDER BY due_at, id
LIMIT :limit;
