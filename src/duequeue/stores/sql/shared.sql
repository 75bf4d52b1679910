-- The queries that have the same text in several dialects. If a dialect has its own text for one of
-- these names, that one counts. `:name` is a parameter; `now` is always given.

-- name: find_kind
SELECT id FROM duequeue_kind WHERE kind = :kind;

-- name: add_kind
-- Two processes may add the same kind at once; both then find it.
INSERT INTO duequeue_kind (kind) VALUES (:kind) ON CONFLICT DO NOTHING;

-- name: count_types
-- Every type of a name, with its number of messages up to a limit; no row if there is only one type.
SELECT
    kind.kind,
    (
        SELECT count(*) FROM (
            SELECT 1 AS one FROM duequeue_message AS message
            WHERE message.kind_id = kind.id LIMIT :most
        ) AS counted
    ) AS live
FROM duequeue_kind AS kind
WHERE substr(kind.kind, 1, length(CAST(:prefix AS text))) = :prefix
AND (
    SELECT count(*) FROM duequeue_kind AS other
    WHERE substr(other.kind, 1, length(CAST(:prefix AS text))) = :prefix
) > 1
ORDER BY kind.kind;

-- name: forget_all_responses
DELETE FROM duequeue_response WHERE kind_id = :kind_id;

-- name: count_messages
-- reads
SELECT
    count(*) FILTER (WHERE leased_until <= :now AND due_at <= :now) AS due,
    count(*) FILTER (WHERE leased_until > :now) AS leased,
    count(*) FILTER (WHERE leased_until <= :now AND due_at > :now) AS future,
    (SELECT count(*) FROM duequeue_buried WHERE kind_id = :kind_id) AS buried,
    min(due_at) FILTER (WHERE leased_until <= :now AND due_at <= :now) AS oldest_due_at,
    min(due_at) FILTER (WHERE leased_until <= :now AND due_at > :now) AS next_due_at
FROM duequeue_message WHERE kind_id = :kind_id;

-- name: count_due
-- reads
-- Messages that are not due yet are counted in the index alone, because nobody can hold them.
SELECT (due_at - :begins_at) / :length AS bucket, count(*) AS messages
FROM duequeue_message
WHERE kind_id = :kind_id AND due_at > :now AND due_at < :until
GROUP BY 1
UNION ALL
SELECT -1, count(*) FROM duequeue_message
WHERE kind_id = :kind_id AND due_at <= :now AND leased_until <= :now;

-- name: next_due
-- reads
SELECT due_at FROM duequeue_message
WHERE kind_id = :kind_id AND due_at > :now
ORDER BY due_at LIMIT 1;

-- name: earliest_due
-- reads
-- An idle consumer runs this at every regular look. It reads once and writes nothing.
SELECT due_at FROM duequeue_message
WHERE kind_id = :kind_id AND leased_until <= :now
ORDER BY due_at, id LIMIT 1;

-- name: last_burial
-- reads
SELECT buried_at, id FROM duequeue_buried WHERE kind_id = :kind_id
ORDER BY buried_at DESC, id DESC LIMIT 1;

-- name: purge_buried
DELETE FROM duequeue_buried WHERE kind_id = :kind_id AND buried_at < :before;

-- name: applied_migrations
SELECT number, name, checksum FROM duequeue_migration ORDER BY number;

-- name: record_migration
INSERT INTO duequeue_migration (number, name, checksum) VALUES (:number, :name, :checksum);

-- name: look_at_cron
-- reads
-- All that an idle refresh asks: one row, and with it the ticks from an instant on.
SELECT
    cron.config_hash, cron.schedule, cron.generation, cron.installed, cron.paused,
    cron.created_until, tick.tick_at
FROM duequeue_cron AS cron
LEFT JOIN duequeue_tick AS tick
    ON
        tick.kind_id = cron.kind_id AND tick.prefix = cron.prefix
        AND tick.config_hash = :config_hash AND tick.tick_at >= :since
WHERE cron.kind_id = :kind_id AND cron.prefix = :prefix;

-- name: lock_cron
-- An update that changes nothing locks the row, and returns it as the lock found it. On SQLite, the
-- transaction has the whole file for itself.
INSERT INTO duequeue_cron AS cron
(kind_id, prefix, config_hash, schedule, generation, installed, paused)
VALUES (:kind_id, :prefix, '', '', 0, FALSE, FALSE)
ON CONFLICT (kind_id, prefix) DO UPDATE SET generation = cron.generation
RETURNING config_hash, schedule, generation, installed, paused, created_until;

-- name: save_cron
UPDATE duequeue_cron
SET config_hash = :config_hash, schedule = :schedule, generation = :generation,
    installed = :installed, paused = :paused, created_until = :created_until
WHERE kind_id = :kind_id AND prefix = :prefix;

-- name: recall_ticks
-- The ticks from an instant on, and up to which instant ticks are no longer remembered one by one.
SELECT tick_at, FALSE AS is_forgotten_until FROM duequeue_tick
WHERE
    kind_id = :kind_id AND prefix = :prefix AND config_hash = :config_hash
    AND tick_at >= :since
UNION ALL
SELECT forgotten_until, TRUE FROM duequeue_forgotten_tick
WHERE kind_id = :kind_id AND prefix = :prefix AND config_hash = :config_hash;

-- name: release_tick
-- No message has an empty key.
UPDATE duequeue_tick SET key = ''
WHERE
    kind_id = :kind_id AND prefix = :prefix AND config_hash = :config_hash
    AND tick_at = :tick_at;

-- name: list_history_days
-- For each kind, the index is searched for the first row, then for the first one on a later day.
WITH RECURSIVE found (kind_id, settled_at) AS (
    SELECT
        kind.id,
        (SELECT min(first.settled_at) FROM duequeue_history AS first WHERE first.kind_id = kind.id)
    FROM duequeue_kind AS kind
    UNION ALL
    SELECT
        found.kind_id,
        (
            SELECT min(next.settled_at) FROM duequeue_history AS next
            WHERE
                next.kind_id = found.kind_id
                AND next.settled_at
                >= found.settled_at - (found.settled_at + 62135596800000) % 86400000 + 86400000
        )
    FROM found WHERE found.settled_at IS NOT NULL
)
SELECT
    found.settled_at - (found.settled_at + 62135596800000) % 86400000 AS day,
    (SELECT kind.kind FROM duequeue_kind AS kind WHERE kind.id = found.kind_id) AS kind
FROM found WHERE found.settled_at IS NOT NULL
ORDER BY day, kind;

-- name: remove_history_rows
-- The count and the deletion see the same rows, so a row that is committed meanwhile with an id in the
-- range stays. A range is never removed twice, since its first or last row is then gone.
DELETE FROM duequeue_history
WHERE
    settled_at >= :day AND settled_at < :day + 86400000
    AND id >= :first_id AND id <= :last_id
    AND (
        SELECT count(*) = :rows AND min(found.id) = :first_id AND max(found.id) = :last_id
        FROM duequeue_history AS found
        WHERE
            found.settled_at >= :day AND found.settled_at < :day + 86400000
            AND found.id >= :first_id AND found.id <= :last_id
    );

-- name: list_kinds
-- reads
SELECT kind FROM duequeue_kind ORDER BY kind;

-- name: count_burial_reasons
-- reads
SELECT kind, reason, count(*), max(buried_at)
FROM duequeue_kind INNER JOIN duequeue_buried ON kind_id = duequeue_kind.id
WHERE buried_at >= :since
GROUP BY kind, reason
ORDER BY count(*) DESC, max(buried_at) DESC, kind, reason LIMIT :limit;

-- name: delete_buried
DELETE FROM duequeue_buried
WHERE id = :id AND buried_at = :buried_at AND kind_id + 0 = :kind_id;

-- name: list_history
-- reads
-- PostgreSQL reads the partitions from the last one backwards, until there are enough rows.
SELECT id, key, asked_at, delivered_at, settled_at, attempts, outcome, handler_ms
FROM duequeue_history
WHERE kind_id = :kind_id AND (CAST(:key AS text) IS NULL OR key = :key)
ORDER BY settled_at DESC, id DESC LIMIT :limit;

-- name: bound_history_day
SELECT coalesce(min(id), 0), coalesce(max(id), 0), count(*)
FROM duequeue_history
WHERE settled_at >= :day AND settled_at < :day + 86400000;

-- name: notify_answered
-- Only PostgreSQL sends something. Every commit on SQLite shows in data_version, and on MariaDB the others
-- find what a caller commits at their regular looks.
SELECT :note;

-- name: raise_forgotten
INSERT INTO duequeue_forgotten_tick AS stored (kind_id, prefix, config_hash, forgotten_until)
VALUES (:kind_id, :prefix, :config_hash, :forgotten_until)
ON CONFLICT (kind_id, prefix, config_hash) DO UPDATE SET forgotten_until = excluded.forgotten_until
WHERE stored.forgotten_until < excluded.forgotten_until;

-- name: count_scheduled
-- reads
-- The messages are counted before they are joined with the kinds. Otherwise a database with many queues
-- might be searched once for each of them.
SELECT kind.kind, counted.hour, counted.messages, counted.overdue
FROM (
    SELECT
        kind_id, count(*) AS messages, count(CASE WHEN due_at <= :now THEN 1 END) AS overdue,
        CASE WHEN due_at > :now THEN due_at - due_at % 3600000 ELSE :now - :now % 3600000 END AS hour
    FROM duequeue_message WHERE due_at < :until
    GROUP BY 1, 4
) AS counted
INNER JOIN duequeue_kind AS kind ON kind.id = counted.kind_id
ORDER BY counted.hour, kind.kind;
