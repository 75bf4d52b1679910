-- The queries of the SQLite store. `:name` is a parameter; `now` is always given.
-- A QueryEach runs its query once for each set of parameters.

-- name: find_kind
SELECT id FROM duequeue_kind WHERE kind = :kind;

-- name: add_kind
INSERT INTO duequeue_kind (kind) VALUES (:kind) ON CONFLICT DO NOTHING;

-- name: offer_messages
-- A new row has no updated_at, an updated one has, and an ignored one is not returned.
INSERT INTO duequeue_message AS stored
    (kind_id, key, payload, headers, due_at, asked_at, created_at)
VALUES (:kind_id, :key, :payload, :headers, :due_at, :due_at, :now)
ON CONFLICT (kind_id, key) DO UPDATE
SET payload = excluded.payload, due_at = excluded.due_at, asked_at = excluded.asked_at,
    headers = excluded.headers, attempt = 0, leased_until = 0, lease_token = 0, updated_at = :now
WHERE :replace AND (stored.payload != excluded.payload OR stored.asked_at != excluded.asked_at)
RETURNING key, updated_at IS NULL AS created;

-- name: claim_messages
-- SQLite runs the sub-select once, so its limit binds.
UPDATE duequeue_message
SET leased_until = :until, lease_token = :token, attempt = attempt + 1
WHERE id IN (
    SELECT id FROM duequeue_message
    WHERE kind_id = :kind_id AND due_at <= :now AND (due_at, id) > (:after_due, :after_id)
        AND leased_until <= :now
    ORDER BY due_at, id
    LIMIT :limit
)
RETURNING due_at, id, key, payload, asked_at, attempt, headers;

-- name: remove_messages
-- Acks, and the second half of a burial.
DELETE FROM duequeue_message WHERE id = :id AND lease_token = :token RETURNING id;

-- name: extend_leases
UPDATE duequeue_message SET leased_until = :until
WHERE id = :id AND lease_token = :token RETURNING id;

-- name: release_messages
UPDATE duequeue_message SET due_at = :due_at, leased_until = 0, lease_token = 0
WHERE id = :id AND lease_token = :token RETURNING id;

-- name: give_back_messages
UPDATE duequeue_message SET leased_until = 0, lease_token = 0, attempt = attempt - 1
WHERE id = :id AND lease_token = :token RETURNING id;

-- name: park_messages
INSERT INTO duequeue_buried
    (kind_id, key, payload, headers, asked_at, attempts, reason, buried_at)
SELECT kind_id, key, payload, headers, asked_at, :attempts, :reason, :now
FROM duequeue_message WHERE id = :id AND lease_token = :token;

-- name: find_message
SELECT payload, asked_at, due_at, leased_until, attempt, headers
FROM duequeue_message WHERE kind_id = :kind_id AND key = :key;

-- name: drop_message
DELETE FROM duequeue_message WHERE kind_id = :kind_id AND key = :key;

-- name: drop_messages
DELETE FROM duequeue_message WHERE kind_id = :kind_id;

-- name: count_messages
SELECT
    count(*) FILTER (WHERE leased_until <= :now AND due_at <= :now) AS due,
    count(*) FILTER (WHERE leased_until > :now) AS leased,
    count(*) FILTER (WHERE leased_until <= :now AND due_at > :now) AS future,
    (SELECT count(*) FROM duequeue_buried WHERE kind_id = :kind_id) AS buried,
    min(due_at) FILTER (WHERE leased_until <= :now AND due_at <= :now) AS oldest_due_at,
    min(due_at) FILTER (WHERE leased_until <= :now AND due_at > :now) AS next_due_at
FROM duequeue_message WHERE kind_id = :kind_id;

-- name: next_due
SELECT due_at FROM duequeue_message
WHERE kind_id = :kind_id AND due_at > :now
ORDER BY due_at LIMIT 1;

-- name: notify_waiters
-- Every commit shows in data_version; there is nothing to add.
SELECT :sender, :due_at, :kind;

-- name: list_buried
SELECT key, payload, asked_at, attempts, reason, buried_at, headers
FROM duequeue_buried WHERE kind_id = :kind_id
ORDER BY buried_at, id LIMIT :limit;

-- name: find_buried
SELECT key, payload, asked_at, attempts, reason, buried_at, headers
FROM duequeue_buried WHERE kind_id = :kind_id AND key = :key
ORDER BY id DESC LIMIT 1;

-- name: lock_buried
-- Held until the transaction ends, so that one burial is revived once.
SELECT id, payload, headers FROM duequeue_buried WHERE kind_id = :kind_id AND key = :key
ORDER BY id DESC LIMIT 1;

-- name: forget_buried
DELETE FROM duequeue_buried WHERE id = :id;

-- name: purge_buried
DELETE FROM duequeue_buried WHERE kind_id = :kind_id AND buried_at < :before;

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

-- name: applied_migrations
SELECT number, name, checksum FROM duequeue_migration ORDER BY number;

-- name: record_migration
INSERT INTO duequeue_migration (number, name, checksum) VALUES (:number, :name, :checksum);
