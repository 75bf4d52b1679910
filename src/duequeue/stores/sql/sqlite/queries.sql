-- The queries of the SQLite store. `:name` is a parameter; `now` is always given.
-- A message whose lease ends at -62135596800000, the beginning of the year 1, is not leased, because
-- no clock is earlier. A QueryEach runs its query once for each set of parameters.
-- A line that begins with `--h` belongs only to `…_with_history`.

-- name: identify_database
-- SQLite takes a table from the first of the attached files that has it, and a temporary one before all.
SELECT place.file
FROM pragma_table_list('duequeue_message') AS found
JOIN pragma_database_list AS place ON place.name = found.schema
ORDER BY place.name != 'temp', place.seq
LIMIT 1;

-- name: offer_messages
-- A new row has no updated_at, an updated one has, and an ignored one is not returned. The note is not
-- sent, because every commit shows in data_version. The lock timeout is not used, because SQLite does
-- not lock single rows.
INSERT INTO duequeue_message AS stored
    (kind_id, key, payload, headers, due_at, asked_at, created_at, expires_at)
VALUES (:kind_id, :key, :payload, :headers, :due_at, :due_at, :now, :expires_at)
ON CONFLICT (kind_id, key) DO UPDATE
SET payload = excluded.payload, due_at = excluded.due_at, asked_at = excluded.asked_at,
    headers = excluded.headers, expires_at = excluded.expires_at, attempt = 0, updated_at = :now,
    leased_until = -62135596800000, lease_token = 0
--h     , replaced_asked_at = stored.asked_at, replaced_attempts = stored.attempt
WHERE
    :replace AND (
        stored.payload != excluded.payload OR stored.asked_at != excluded.asked_at
        OR stored.expires_at IS NOT excluded.expires_at
    )
RETURNING key, updated_at IS NULL AS created, :note, :lock_timeout;

-- name: claim_messages
-- not awaited
-- The last digit of the new token says how many leases in a row the message has lost, as port/fencing.py
-- explains.
-- SQLite runs the sub-select once, so its limit holds. The last column is the response to an earlier
-- message with the same key, which the caller deletes.
UPDATE duequeue_message
SET
    leased_until = :until,
    lease_token = :token + CASE
        WHEN lease_token <= 0 THEN -lease_token
        WHEN lease_token % 10 >= 5 THEN 4
        ELSE min(lease_token % 10 + 1, 3)
    END,
    attempt = min(attempt, 2147483646) + 1
WHERE id IN (
    SELECT id FROM duequeue_message
    WHERE kind_id = :kind_id AND due_at <= :now AND (due_at, id) > (:after_due, :after_id)
        AND leased_until <= :now
    ORDER BY due_at, id
    LIMIT :limit
)
RETURNING due_at, id, key, payload, asked_at, attempt, headers, expires_at, lease_token, (
    SELECT old.id FROM duequeue_response AS old
    WHERE old.kind_id = :kind_id AND old.key = duequeue_message.key
) AS old_response;

-- name: claim_expired
-- This leases the expired ones among the messages that are due first, so that one more statement can
-- remove them.
UPDATE duequeue_message SET leased_until = :until, lease_token = :token
WHERE id IN (
    SELECT first.id FROM (
        SELECT id, expires_at FROM duequeue_message
        WHERE kind_id = :kind_id AND due_at <= :now AND leased_until <= :now
        ORDER BY due_at, id
        LIMIT :limit
    ) AS first
    WHERE first.expires_at <= :now
)
RETURNING id, key, attempt, (
    SELECT old.id FROM duequeue_response AS old
    WHERE old.kind_id = :kind_id AND old.key = duequeue_message.key
) AS old_response;

-- name: remove_messages
-- This acks, and it is the second half of a burial.
DELETE FROM duequeue_message WHERE id = :id AND lease_token = :token RETURNING id;

-- name: remove_expired
DELETE FROM duequeue_message
WHERE id = :id AND lease_token = :token AND expires_at <= :now RETURNING id;

-- name: extend_leases
UPDATE duequeue_message SET leased_until = :until
WHERE id = :id AND lease_token = :token RETURNING id;

-- name: find_held
SELECT id FROM duequeue_message WHERE id = :id AND lease_token = :token;

-- name: release_messages
UPDATE duequeue_message SET due_at = :due_at, leased_until = -62135596800000, lease_token = 0
WHERE id = :id AND lease_token = :token RETURNING id;

-- name: give_back_messages
UPDATE duequeue_message
SET leased_until = -62135596800000, lease_token = -(lease_token % 5), attempt = attempt - 1
WHERE id = :id AND lease_token = :token RETURNING id;

-- name: park_messages
INSERT INTO duequeue_buried
    (kind_id, key, payload, headers, asked_at, attempts, reason, buried_at)
SELECT kind_id, key, payload, headers, asked_at, :attempts, :reason, :now
FROM duequeue_message WHERE id = :id AND lease_token = :token AND key = :key;

-- name: find_message
-- reads
-- This finds the live message and the newest burial in one statement, because between two statements
-- one could become the other.
SELECT
    payload, asked_at, attempt, headers, due_at, leased_until, expires_at,
    NULL AS reason, NULL AS buried_at, NULL AS burial_id
FROM duequeue_message WHERE kind_id = :kind_id AND key = :key
UNION ALL
SELECT payload, asked_at, attempts, headers, NULL, NULL, NULL, reason, buried_at, id
FROM (
    SELECT * FROM duequeue_buried WHERE kind_id = :kind_id AND key = :key
    ORDER BY id DESC LIMIT 1
) AS newest;

-- name: write_responses
-- A response is either a payload or the reason why there is none.
INSERT OR REPLACE INTO duequeue_response (kind_id, key, payload, reason, responded_at, expires_at)
SELECT kind_id, key, :payload, :reason, :now, :expires_at
FROM duequeue_message WHERE id = :id AND lease_token = :token;

-- name: refuse_messages
-- This is write_responses for messages that are dropped by their keys. The token is not used here and
-- in drop_message, because nobody else writes between the two.
INSERT OR REPLACE INTO duequeue_response (kind_id, key, reason, responded_at, expires_at)
SELECT kind_id, key, :reason, :now, :expires_at
FROM duequeue_message WHERE kind_id = :kind_id AND key = :key
RETURNING :token;

-- name: find_response
-- reads
-- A message in the queue comes first, because then every response is to an earlier one.
SELECT TRUE AS is_pending, NULL AS payload, NULL AS reason, created_at
FROM duequeue_message WHERE kind_id = :kind_id AND key = :key
UNION ALL
SELECT FALSE, payload, reason, responded_at FROM duequeue_response
WHERE kind_id = :kind_id AND key = :key AND expires_at > :now;

-- name: forget_old_responses
DELETE FROM duequeue_response WHERE kind_id = :kind_id AND key = :key AND id = :id;

-- name: forget_batch_responses
-- This is forget_old_responses for a micro-batch of Spark, whose messages this transaction has leased.
DELETE FROM duequeue_response
WHERE kind_id = :kind_id AND key IN (
    SELECT message.key
    FROM duequeue_stream_batch AS batch, json_each(batch.ids) AS leased
    CROSS JOIN duequeue_message AS message ON message.id = leased.value
    WHERE
        batch.kind_id = :kind_id AND batch.consumer = :consumer AND batch.sequence = :sequence
        AND EXISTS (SELECT 1 FROM duequeue_response WHERE kind_id = :kind_id)
);

-- name: forget_response
-- While a message with the key is in the queue, there is no response to it.
DELETE FROM duequeue_response
WHERE
    kind_id = :kind_id AND key = :key AND expires_at > :now
    AND NOT EXISTS (
        SELECT 1 FROM duequeue_message AS message
        WHERE message.kind_id = :kind_id AND message.key = :key
    );

-- name: sweep_responses
DELETE FROM duequeue_response
WHERE id IN (
    SELECT id FROM duequeue_response
    WHERE kind_id = :kind_id AND expires_at <= :now
    ORDER BY expires_at LIMIT :limit
);

-- name: list_messages
-- reads
-- This walks over the index of due times. The prefix is compared in a way that no index serves.
SELECT id, key, payload, asked_at, due_at, leased_until, attempt, headers, expires_at
FROM duequeue_message INDEXED BY duequeue_message_due
WHERE
    kind_id = :kind_id AND (due_at, id) > (:after_due, :after_id) AND due_at <= :due_until
    AND leased_until >= :leased_from AND leased_until <= :leased_until
    AND substr(key, 1, length(:prefix)) = :prefix
ORDER BY due_at, id
LIMIT :limit;

-- name: count_keys
-- reads
SELECT count(*) FROM (
    SELECT 1 FROM duequeue_message INDEXED BY duequeue_message_key
    WHERE kind_id = :kind_id AND key >= :first_key AND key <= :last_key
    LIMIT :limit
);

-- name: list_messages_by_key
-- reads
-- Only the places are sorted, and not the payloads of all keys with the prefix.
SELECT id, key, payload, asked_at, due_at, leased_until, attempt, headers, expires_at
FROM duequeue_message
WHERE id IN (
    SELECT id FROM duequeue_message INDEXED BY duequeue_message_key
    WHERE
        kind_id = :kind_id AND key >= :first_key AND key <= :last_key
        AND (due_at, id) > (:after_due, :after_id) AND due_at <= :due_until
        AND leased_until >= :leased_from AND leased_until <= :leased_until
    ORDER BY due_at, id
    LIMIT :limit
)
ORDER BY due_at, id;

-- name: reschedule_message
UPDATE duequeue_message
SET due_at = :due_at, asked_at = :due_at, updated_at = :now,
    leased_until = -62135596800000, lease_token = 0
WHERE kind_id = :kind_id AND key = :key AND (expires_at IS NULL OR expires_at > :due_at);

-- name: drop_message
DELETE FROM duequeue_message WHERE kind_id = :kind_id AND key = :key RETURNING :token;

-- name: drop_messages
DELETE FROM duequeue_message WHERE kind_id = :kind_id;

-- name: notify_waiters
-- Nothing needs to be sent, because every commit shows in data_version.
SELECT :note;

-- name: list_buried
-- reads
SELECT key, payload, asked_at, attempts, reason, buried_at, headers, id
FROM duequeue_buried
WHERE
    kind_id = :kind_id AND (buried_at, id) > (:after_at, :after_id)
    AND (buried_at, id) <= (:until_at, :until_id)
    AND instr(reason, :reason) > 0
ORDER BY buried_at, id LIMIT :limit;

-- name: lock_buried
-- The transaction has the whole file for itself, so that a burial is revived only once.
SELECT id, buried_at FROM duequeue_buried
WHERE
    kind_id = :kind_id AND key = :key
    AND (:id IS NULL OR (id = :id AND buried_at = :buried_at))
ORDER BY id DESC LIMIT 1;

-- name: lock_burials
-- Of each key only the newest burial counts.
SELECT id, buried_at FROM duequeue_buried AS buried
WHERE
    kind_id = :kind_id AND (buried_at, id) > (:after_at, :after_id)
    AND (buried_at, id) <= (:until_at, :until_id)
    AND instr(reason, :reason) > 0
    AND NOT EXISTS (
        SELECT 1 FROM duequeue_buried AS newer
        WHERE
            newer.kind_id = :kind_id AND newer.key = buried.key AND newer.id > buried.id
            AND instr(newer.reason, :reason) > 0
    )
ORDER BY buried_at, id LIMIT :limit;

-- name: revive_burials
INSERT INTO duequeue_message (kind_id, key, payload, headers, due_at, asked_at, created_at)
SELECT kind_id, key, payload, headers, :due_at, :due_at, :now
FROM duequeue_buried WHERE id = :id
ON CONFLICT (kind_id, key) DO NOTHING
RETURNING :id, key;

-- name: forget_burials
DELETE FROM duequeue_buried WHERE id = :id;

-- name: delete_old_burials
DELETE FROM duequeue_buried
WHERE id IN (
    SELECT id FROM duequeue_buried
    WHERE kind_id = :kind_id AND buried_at < :before
    ORDER BY buried_at, id LIMIT :limit
);

-- name: has_migrations
SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'duequeue_migration';

-- name: lock_migrations
-- BEGIN IMMEDIATE is already the lock.
SELECT 1;

-- name: create_migrations
CREATE TABLE IF NOT EXISTS duequeue_migration (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL
) STRICT;

-- name: hold_undelivered_ticks
-- The transaction has the whole file for itself, so what is found stays undelivered until it ends.
SELECT tick.config_hash, tick.tick_at, tick.key
FROM duequeue_tick AS tick
INNER JOIN duequeue_message AS message
    ON message.kind_id = tick.kind_id AND message.key = tick.key
WHERE tick.kind_id = :kind_id AND tick.prefix = :prefix AND message.attempt = 0;

-- name: remove_tick_messages
DELETE FROM duequeue_message WHERE kind_id = :kind_id AND key = :key;

-- name: remove_ticks
DELETE FROM duequeue_tick
WHERE
    kind_id = :kind_id AND prefix = :prefix
    AND config_hash = :config_hash AND tick_at = :tick_at;

-- name: remember_ticks
INSERT INTO duequeue_tick (kind_id, prefix, config_hash, tick_at, key)
VALUES (:kind_id, :prefix, :config_hash, :tick_at, :key)
ON CONFLICT DO NOTHING;

-- name: forget_ticks
-- The oldest go first, and only a few at a time, so that a backlog does not make one call slow.
DELETE FROM duequeue_tick AS tick
WHERE
    tick.kind_id = :kind_id AND tick.prefix = :prefix AND tick.config_hash = :config_hash
    AND tick.tick_at IN (
        SELECT old.tick_at FROM duequeue_tick AS old
        WHERE
            old.kind_id = :kind_id AND old.prefix = :prefix AND old.config_hash = :config_hash
            AND old.tick_at <= (
                SELECT kept.tick_at FROM duequeue_tick AS kept
                WHERE
                    kept.kind_id = :kind_id AND kept.prefix = :prefix
                    AND kept.config_hash = :config_hash AND kept.tick_at <= :now
                ORDER BY kept.tick_at DESC LIMIT 1 OFFSET :keep
            )
        ORDER BY old.tick_at LIMIT :limit
    )
    AND NOT EXISTS (
        SELECT 1 FROM duequeue_message AS message
        WHERE message.kind_id = :kind_id AND message.key = tick.key
    )
RETURNING tick_at;

-- name: list_crons
-- reads
SELECT
    cron.prefix, cron.config_hash, cron.schedule, cron.generation, cron.paused,
    (
        SELECT min(tick.tick_at) FROM duequeue_tick AS tick
        INNER JOIN duequeue_message AS message
            ON message.kind_id = tick.kind_id AND message.key = tick.key
        WHERE
            tick.kind_id = cron.kind_id AND tick.prefix = cron.prefix
            AND tick.config_hash = cron.config_hash AND message.attempt = 0
    ) AS next_tick_at,
    (
        SELECT max(tick.tick_at) FROM duequeue_tick AS tick
        WHERE
            tick.kind_id = cron.kind_id AND tick.prefix = cron.prefix
            AND NOT EXISTS (
                SELECT 1 FROM duequeue_message AS message
                WHERE
                    message.kind_id = tick.kind_id AND message.key = tick.key
                    AND message.attempt = 0
            )
    ) AS last_tick_at
FROM duequeue_cron AS cron
WHERE cron.kind_id = :kind_id AND cron.installed
ORDER BY cron.prefix;

-- name: remove_messages_with_history
-- This acks. An update of the view adds each message to the history and deletes it. The value that it
-- returns for a column that it does not set is undefined, hence the parameter.
UPDATE duequeue_settling
SET outcome = 'acked', settled_at = :now, delivered_at = :delivered_at, handler_ms = :handler_ms
WHERE message_id = :id AND lease_token = :token RETURNING :id;

-- name: remove_with_outcome
-- This is the second half of a burial, or the end of messages that have expired. The caller says how many
-- attempts count, since the claim that found a message expired did not deliver it.
UPDATE duequeue_settling
SET outcome = :outcome, settled_at = :now, delivered_at = :delivered_at, attempts = :attempts,
    handler_ms = :handler_ms
WHERE
    message_id = :id AND lease_token = :token
    AND (
        :outcome != 'expired'
        OR EXISTS (SELECT 1 FROM duequeue_message WHERE id = :id AND expires_at <= :now)
    )
RETURNING :id;

-- name: drop_message_with_history
UPDATE duequeue_settling SET outcome = 'dropped', settled_at = :now
WHERE kind_id = :kind_id AND key = :key RETURNING :token;

-- name: drop_messages_with_history
UPDATE duequeue_settling SET outcome = 'dropped', settled_at = :now
WHERE kind_id = :kind_id RETURNING 1;

-- name: remove_tick_messages_with_history
UPDATE duequeue_settling SET outcome = 'dropped', settled_at = :now
WHERE kind_id = :kind_id AND key = :key;

-- name: add_history_day
-- All days are in one table, so there is nothing to add.
SELECT :day;

-- name: bound_history_day
-- reads
-- The index begins with the kind, so the day is looked up for each kind.
SELECT coalesce(min(id), 0), coalesce(max(id), 0), count(*)
FROM duequeue_history
WHERE
    kind_id IN (SELECT kind.id FROM duequeue_kind AS kind)
    AND settled_at >= :day AND settled_at < :day + 86400000;

-- name: read_history_day
-- reads
SELECT
    history.id,
    (SELECT kind.kind FROM duequeue_kind AS kind WHERE kind.id = history.kind_id) AS kind,
    history.key, history.asked_at, history.delivered_at, history.settled_at, history.attempts,
    history.outcome, history.handler_ms
FROM duequeue_history AS history
WHERE
    history.settled_at >= :day AND history.settled_at < :day + 86400000
    AND history.id > :after_id AND history.id <= :until_id
ORDER BY history.id LIMIT :limit;

-- name: drop_history_days
-- All days are in one table, so there is nothing to drop.
SELECT :kind_id, :before;

-- name: delete_old_history
DELETE FROM duequeue_history
WHERE id IN (
    SELECT id FROM duequeue_history
    WHERE kind_id = :kind_id AND settled_at < :before
    ORDER BY settled_at, id LIMIT :limit
);

-- name: lock_history_day
-- The transaction has the whole file for itself.
SELECT :day;

-- name: remove_history_day
-- The day is removed in one piece, as on PostgreSQL, so that the archiver knows what is gone.
DELETE FROM duequeue_history
WHERE
    kind_id IN (SELECT kind.id FROM duequeue_kind AS kind)
    AND settled_at >= :day AND settled_at < :day + 86400000;
