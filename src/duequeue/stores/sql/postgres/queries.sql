-- The queries of the PostgreSQL store. `:name` is a parameter; `now` is always given.
-- A message whose lease ends at -62135596800000, the beginning of the year 1, is not leased, because
-- no clock is earlier. Parameters named in a QueryEach arrive as arrays.
-- A line that begins with `--h` belongs only to `…_with_history`.

-- name: identify_database
-- No two servers started at the same microsecond, and a copy of a server has its own start. The query does
-- not fail if the tables are missing, because a failure would end the caller's transaction.
SELECT
    CAST(extract(EPOCH FROM pg_postmaster_start_time()) * 1000000 AS bigint),
    (SELECT CAST(oid AS bigint) FROM pg_database WHERE datname = current_database()),
    CAST(CAST(to_regclass('duequeue_message') AS oid) AS bigint);

-- name: offer_messages
-- Ids are drawn in input order, because messages due at the same instant are delivered in insertion
-- order. Rows are locked in key order, as by every statement here that locks several, so that no two
-- of them can deadlock. A row that is not changed is locked too. An offer that may not replace a stored
-- message has a number in replaced_attempts, because ON CONFLICT knows only columns of the table. A new
-- row has no updated_at, an updated one has, and an ignored one is not returned. The note, if there
-- is one, is sent once, and only if a row changed, since the sub-select runs for the first row that
-- is returned.
WITH input AS MATERIALIZED (
    SELECT
        nextval('duequeue_message_id_seq') AS id, key, payload, due_at, headers, expires_at,
        CASE WHEN NOT replace THEN 0 END AS keeps_stored
    FROM unnest(
        CAST(:key AS text []), CAST(:payload AS bytea []), CAST(:due_at AS bigint []),
        CAST(:headers AS text []), CAST(:replace AS boolean []), CAST(:expires_at AS bigint [])
    ) AS offered (key, payload, due_at, headers, replace, expires_at)
    WHERE CAST(:lock_timeout AS text) IS NULL
        OR (SELECT set_config('lock_timeout', :lock_timeout, true)) IS NOT NULL
)
--h , changed AS (
INSERT INTO duequeue_message AS stored
    (
    id, kind_id, key, payload, headers, due_at, asked_at, created_at, replaced_attempts,
    expires_at
)
SELECT id, :kind_id, key, payload, headers, due_at, due_at, :now, keeps_stored, expires_at
FROM input ORDER BY key COLLATE "C"
ON CONFLICT (kind_id, key) DO UPDATE
SET payload = excluded.payload, due_at = excluded.due_at, asked_at = excluded.asked_at,
    headers = excluded.headers, expires_at = excluded.expires_at, attempt = 0, updated_at = :now,
    leased_until = -62135596800000, lease_token = 0
--h     , replaced_asked_at = stored.asked_at, replaced_attempts = stored.attempt
WHERE
    excluded.replaced_attempts IS NULL
    AND (
        stored.payload != excluded.payload OR stored.asked_at != excluded.asked_at
        OR stored.expires_at IS DISTINCT FROM excluded.expires_at
    )
RETURNING key, updated_at IS NULL AS created, (
    SELECT pg_notify('duequeue', :note) WHERE CAST(:note AS text) IS NOT NULL
)
--h , replaced_asked_at, replaced_attempts
--h ), kept AS (
--h     INSERT INTO duequeue_history (kind_id, key, asked_at, settled_at, attempts, outcome)
--h     SELECT :kind_id, key, replaced_asked_at, :now, replaced_attempts, 'replaced'
--h     FROM changed WHERE NOT created
--h )
--h SELECT key, created FROM changed
;

-- name: claim_messages
-- The last digit of the new token says how many leases in a row the message has lost, as port/fencing.py
-- explains.
-- The array enforces the limit under every plan; with `id IN (SELECT … LIMIT n)`, a nested loop would
-- run the sub-select again and again, and claim far more than n. Rows are found again by id and not
-- by ctid, because an offer may move a row between the snapshot and the lock. On our own connections
-- a claim does not wait for the disk, since a crash of the server can undo only a lease, after which
-- the message is delivered again. A caller's transaction keeps its own setting. The last column is the
-- response to an earlier message with the same key, which the caller deletes. In a queue without
-- responses, one look at an index finds that there is none. It begins at the end, because the first
-- entries are those of responses that have expired and been deleted.
UPDATE duequeue_message
SET
    leased_until = :until,
    lease_token = :token + CASE
        WHEN lease_token <= 0 THEN -lease_token
        WHEN mod(lease_token, 10) >= 5 THEN 4
        ELSE least(mod(lease_token, 10) + 1, 3)
    END,
    attempt = least(attempt, 2147483646) + 1
WHERE id = ANY(ARRAY(
    SELECT id FROM duequeue_message
    WHERE kind_id = :kind_id AND due_at <= :now AND (due_at, id) > (:after_due, :after_id)
        AND leased_until <= :now
    ORDER BY due_at, id
    LIMIT :limit
    FOR UPDATE SKIP LOCKED
))
AND (
    SELECT set_config('synchronous_commit', coalesce(
        nullif(current_setting('duequeue.claim_commit', true), ''),
        current_setting('synchronous_commit')
    ), true)
) IS NOT NULL
RETURNING due_at, id, key, payload, asked_at, attempt, headers, expires_at, lease_token, CASE
    WHEN (
        SELECT TRUE FROM duequeue_response WHERE kind_id = :kind_id AND expires_at > :now
        ORDER BY expires_at DESC LIMIT 1
    )
        THEN (
            SELECT old.id FROM duequeue_response AS old
            WHERE old.key = duequeue_message.key AND old.kind_id + 0 = :kind_id
        )
END AS old_response;

-- name: claim_expired
-- This leases the expired ones among the messages that are due first, so that one more statement can
-- remove them. Only these rows are locked, and only if they are still expired then.
UPDATE duequeue_message SET leased_until = :until, lease_token = :token
WHERE id = ANY(ARRAY(
    SELECT id FROM duequeue_message
    WHERE id = ANY(ARRAY(
        SELECT first.id FROM (
            SELECT id, expires_at FROM duequeue_message
            WHERE kind_id = :kind_id AND due_at <= :now AND leased_until <= :now
            ORDER BY due_at, id
            LIMIT :limit
        ) AS first
        WHERE first.expires_at <= :now
    )) AND leased_until <= :now AND expires_at <= :now
    FOR UPDATE SKIP LOCKED
))
RETURNING id, key, attempt, CASE
    WHEN (
        SELECT TRUE FROM duequeue_response WHERE kind_id = :kind_id AND expires_at > :now
        ORDER BY expires_at DESC LIMIT 1
    )
        THEN (
            SELECT old.id FROM duequeue_response AS old
            WHERE old.key = duequeue_message.key AND old.kind_id + 0 = :kind_id
        )
END AS old_response;

-- name: remove_messages
-- This acks, and it is the second half of a burial. Here and in the two queries below, the leases come
-- in key order and their rows are looked up one after the other, so that they are locked in that order.
-- With a plain `=`, the planner would do that until the statistics of a drained table say that it has
-- one row; then it would walk the whole index. `= ANY` of one id leaves it nothing but a look-up on our
-- own connections, which do not scan tables.
DELETE FROM duequeue_message AS held
USING unnest(CAST(:id AS bigint []), CAST(:token AS bigint [])) AS lease (id, token)
WHERE held.id = ANY(ARRAY[lease.id]) AND held.lease_token = lease.token
RETURNING held.id;

-- name: remove_expired
DELETE FROM duequeue_message AS held
USING unnest(CAST(:id AS bigint []), CAST(:token AS bigint [])) AS lease (id, token)
WHERE
    held.id = ANY(ARRAY[lease.id]) AND held.lease_token = lease.token AND held.expires_at <= :now
RETURNING held.id;

-- name: release_messages
UPDATE duequeue_message AS held
SET due_at = lease.due_at, leased_until = -62135596800000, lease_token = 0
FROM unnest(
    CAST(:id AS bigint []), CAST(:token AS bigint []), CAST(:due_at AS bigint [])
) AS lease (id, token, due_at)
WHERE held.id = ANY(ARRAY[lease.id]) AND held.lease_token = lease.token
RETURNING held.id;

-- name: give_back_messages
UPDATE duequeue_message AS held
SET leased_until = -62135596800000, lease_token = -mod(held.lease_token, 5),
    attempt = held.attempt - 1
FROM unnest(CAST(:id AS bigint []), CAST(:token AS bigint [])) AS lease (id, token)
WHERE held.id = ANY(ARRAY[lease.id]) AND held.lease_token = lease.token
RETURNING held.id;

-- name: extend_leases
-- A lease must not end while its extension waits for an offer or for somebody else's lock, so rows
-- that are locked are left out. Here and in find_held, `(…) IS TRUE` cannot be turned into a join, so
-- that each lease is looked up by its id under every plan.
UPDATE duequeue_message SET leased_until = :until
WHERE id = ANY(ARRAY(
    SELECT id FROM duequeue_message
    WHERE id = ANY(CAST(:id AS bigint [])) AND (
        (id, lease_token) IN (
            SELECT * FROM unnest(CAST(:id AS bigint []), CAST(:token AS bigint []))
        )
    ) IS TRUE
    FOR UPDATE SKIP LOCKED
))
RETURNING id;

-- name: find_held
SELECT id FROM duequeue_message
WHERE id = ANY(CAST(:id AS bigint [])) AND (
    (id, lease_token) IN (SELECT * FROM unnest(CAST(:id AS bigint []), CAST(:token AS bigint [])))
) IS TRUE;

-- name: park_messages
-- The rows stay locked, so that no offer changes one before the same transaction removes it. They are
-- locked in key order, and added in the order in which they are given.
INSERT INTO duequeue_buried
    (kind_id, key, payload, headers, asked_at, attempts, reason, buried_at)
SELECT held.kind_id, held.key, held.payload, held.headers, held.asked_at,
    lease.attempts, lease.reason, :now
FROM (
    SELECT * FROM unnest(
        CAST(:id AS bigint []), CAST(:token AS bigint []), CAST(:key AS text []),
        CAST(:attempts AS integer []), CAST(:reason AS text [])
    ) WITH ORDINALITY AS given (id, token, key, attempts, reason, position)
    ORDER BY key COLLATE "C"
) AS lease
CROSS JOIN LATERAL (
    SELECT * FROM duequeue_message
    WHERE id = lease.id AND lease_token = lease.token
    FOR UPDATE
) AS held
ORDER BY lease.position;

-- name: find_message
-- This finds the live message and the newest burial in one statement, because between two statements
-- one could become the other. Here and wherever a key is looked up, `kind_id + 0` keeps the planner
-- from walking the due index of the kind, which it would find as good while the statistics say that
-- the table is nearly empty.
SELECT
    payload, asked_at, attempt, headers, due_at, leased_until, expires_at,
    NULL AS reason, NULL AS buried_at, NULL AS burial_id
FROM duequeue_message WHERE key = :key AND kind_id + 0 = :kind_id
UNION ALL
SELECT payload, asked_at, attempts, headers, NULL, NULL, NULL, reason, buried_at, id
FROM (
    SELECT * FROM duequeue_buried WHERE kind_id = :kind_id AND key = :key
    ORDER BY id DESC LIMIT 1
) AS newest;

-- name: write_responses
-- The rows of the messages stay locked, so that exactly those that get a response are removed by the same
-- transaction. A response is either a payload or the reason why there is none.
INSERT INTO duequeue_response (kind_id, key, payload, reason, responded_at, expires_at)
SELECT held.kind_id, held.key, lease.payload, lease.reason, :now, lease.expires_at
FROM unnest(
    CAST(:id AS bigint []), CAST(:token AS bigint []), CAST(:payload AS bytea []),
    CAST(:reason AS text []), CAST(:expires_at AS bigint [])
) AS lease (id, token, payload, reason, expires_at)
CROSS JOIN LATERAL (
    SELECT kind_id, key FROM duequeue_message
    WHERE id = lease.id AND lease_token = lease.token
    FOR UPDATE
) AS held
ON CONFLICT (kind_id, key) DO UPDATE
SET id = excluded.id, payload = excluded.payload, reason = excluded.reason,
    responded_at = excluded.responded_at, expires_at = excluded.expires_at;

-- name: refuse_messages
-- This is write_responses for messages that are dropped by their keys. They get a token that no lease has,
-- by which drop_message finds them. If there is none, nothing is locked, so somebody may offer the key
-- before the next statement, and that message stays.
WITH marked AS (
    UPDATE duequeue_message SET lease_token = :token
    WHERE key = ANY(CAST(:key AS text [])) AND kind_id + 0 = :kind_id
    RETURNING kind_id, key
)
INSERT INTO duequeue_response (kind_id, key, reason, responded_at, expires_at)
SELECT kind_id, key, CAST(:reason AS text), :now, CAST(:expires_at AS bigint) FROM marked
ON CONFLICT (kind_id, key) DO UPDATE
SET id = excluded.id, payload = excluded.payload, reason = excluded.reason,
    responded_at = excluded.responded_at, expires_at = excluded.expires_at;

-- name: find_response
-- A message in the queue comes first, because then every response is to an earlier one. As with
-- `kind_id + 0`, the planner must not take the index by expiry, even if the statistics are old.
SELECT TRUE AS is_pending, CAST(NULL AS bytea) AS payload, CAST(NULL AS text) AS reason, created_at
FROM duequeue_message WHERE key = :key AND kind_id + 0 = :kind_id
UNION ALL
SELECT FALSE, payload, reason, responded_at FROM duequeue_response
WHERE key = :key AND kind_id + 0 = :kind_id AND expires_at + 0 > :now;

-- name: forget_old_responses
DELETE FROM duequeue_response AS old
USING unnest(CAST(:key AS text []), CAST(:id AS bigint [])) AS given (key, id)
WHERE old.key = given.key AND old.kind_id + 0 = :kind_id AND old.id = given.id;

-- name: forget_batch_responses
-- This is forget_old_responses for a micro-batch of Spark, whose messages this transaction has leased.
DELETE FROM duequeue_response AS old
USING duequeue_stream_batch AS batch, unnest(batch.ids) AS leased (id), duequeue_message AS message
WHERE
    (
        SELECT TRUE FROM duequeue_response WHERE kind_id = :kind_id
        ORDER BY expires_at DESC LIMIT 1
    )
    AND batch.kind_id = :kind_id AND batch.consumer = :consumer AND batch.sequence = :sequence
    AND message.id = leased.id
    AND old.key = message.key AND old.kind_id + 0 = :kind_id;

-- name: forget_response
-- While a message with the key is in the queue, there is no response to it.
DELETE FROM duequeue_response
WHERE
    key = :key AND kind_id + 0 = :kind_id AND expires_at + 0 > :now
    AND (
        SELECT message.id FROM duequeue_message AS message
        WHERE message.key = :key AND message.kind_id + 0 = :kind_id
    ) IS NULL;

-- name: sweep_responses
-- Responses that another transaction is changing are left alone.
DELETE FROM duequeue_response
WHERE key = ANY(ARRAY(
    SELECT key FROM duequeue_response
    WHERE kind_id = :kind_id AND expires_at <= :now
    ORDER BY expires_at LIMIT :limit
    FOR UPDATE SKIP LOCKED
)) AND kind_id + 0 = :kind_id;

-- name: notify_answered
-- The server delivers the notes when the transaction commits.
SELECT pg_notify('duequeue', note) FROM unnest(CAST(:note AS text [])) AS given (note);

-- name: list_messages
-- This walks over the index of due times. The prefix is compared in a way that no index serves, so that
-- the planner cannot choose the index of keys, which would read all keys with the prefix for each page.
SELECT id, key, payload, asked_at, due_at, leased_until, attempt, headers, expires_at
FROM duequeue_message
WHERE
    kind_id = :kind_id AND (due_at, id) > (:after_due, :after_id) AND due_at <= :due_until
    AND leased_until >= :leased_from AND leased_until <= :leased_until
    AND left(key, length(CAST(:prefix AS text))) = CAST(:prefix AS text)
ORDER BY due_at, id
LIMIT :limit;

-- name: count_keys
-- The keys of all queues are counted, because checking the queue of each key would cost more.
SELECT count(*) FROM (
    SELECT 1 FROM duequeue_message
    WHERE key >= :first_key AND key <= :last_key AND CAST(:kind_id AS integer) IS NOT NULL
    LIMIT :limit
) AS found;

-- name: list_messages_by_key
-- `+ 0` leaves the planner only the index of keys, which it would otherwise combine with that of due times.
SELECT id, key, payload, asked_at, due_at, leased_until, attempt, headers, expires_at
FROM duequeue_message
WHERE id = ANY(ARRAY(
    SELECT id FROM duequeue_message
    WHERE
        key >= :first_key AND key <= :last_key AND kind_id + 0 = :kind_id
        AND (due_at + 0, id) > (:after_due, :after_id) AND due_at + 0 <= :due_until
        AND leased_until >= :leased_from AND leased_until <= :leased_until
    ORDER BY due_at, id
    LIMIT :limit
))
ORDER BY due_at, id;

-- name: reschedule_message
UPDATE duequeue_message
SET due_at = :due_at, asked_at = :due_at, updated_at = :now,
    leased_until = -62135596800000, lease_token = 0
WHERE key = :key AND kind_id + 0 = :kind_id AND (expires_at IS NULL OR expires_at > :due_at);

-- name: drop_message
-- This deletes what refuse_messages has given the token.
--h WITH gone AS (
DELETE FROM duequeue_message
WHERE key = ANY(CAST(:key AS text [])) AND kind_id + 0 = :kind_id AND lease_token = :token
RETURNING 1
--h , kind_id, key, asked_at, attempt
--h ), kept AS (
--h     INSERT INTO duequeue_history (kind_id, key, asked_at, settled_at, attempts, outcome)
--h     SELECT kind_id, key, asked_at, :now, attempt, 'dropped' FROM gone
--h )
--h SELECT 1 FROM gone
;

-- name: drop_messages
--h WITH gone AS (
DELETE FROM duequeue_message AS dropped
USING (SELECT id FROM duequeue_message WHERE kind_id = :kind_id ORDER BY key) AS found
WHERE dropped.id = ANY(ARRAY[found.id])
--h RETURNING dropped.kind_id, dropped.key, dropped.asked_at, dropped.attempt
--h ), kept AS (
--h     INSERT INTO duequeue_history (kind_id, key, asked_at, settled_at, attempts, outcome)
--h     SELECT kind_id, key, asked_at, :now, attempt, 'dropped' FROM gone
--h )
--h SELECT count(*) FROM gone
;

-- name: notify_waiters
-- The server delivers the note when the transaction commits.
SELECT pg_notify('duequeue', :note);

-- name: list_buried
SELECT key, payload, asked_at, attempts, reason, buried_at, headers, id
FROM duequeue_buried
WHERE
    kind_id = :kind_id AND (buried_at, id) > (:after_at, :after_id)
    AND (buried_at, id) <= (:until_at, :until_id)
    AND strpos(reason, :reason) > 0
ORDER BY buried_at, id LIMIT :limit;

-- name: lock_buried
-- The row stays locked until the transaction ends, so that a burial is revived only once.
SELECT id, buried_at FROM duequeue_buried
WHERE
    kind_id = :kind_id AND key = :key
    AND (CAST(:id AS bigint) IS NULL OR (id = :id AND buried_at = :buried_at))
ORDER BY id DESC LIMIT 1
FOR UPDATE;

-- name: lock_burials
-- Of each key only the newest burial counts. A burial that is locked is being revived by somebody else.
SELECT id, buried_at FROM duequeue_buried AS buried
WHERE
    kind_id = :kind_id AND (buried_at, id) > (:after_at, :after_id)
    AND (buried_at, id) <= (:until_at, :until_id)
    AND strpos(reason, :reason) > 0
    AND (
        SELECT newer.id FROM duequeue_buried AS newer
        WHERE
            newer.kind_id = :kind_id AND newer.key = buried.key AND newer.id > buried.id
            AND strpos(newer.reason, :reason) > 0
        LIMIT 1
    ) IS NULL
ORDER BY buried_at, id LIMIT :limit
FOR UPDATE SKIP LOCKED;

-- name: revive_burials
-- As in offer_messages, ids are drawn in the given order, and rows are locked in key order.
WITH input AS MATERIALIZED (
    SELECT nextval('duequeue_message_id_seq') AS id, buried.*
    FROM unnest(CAST(:id AS bigint [])) AS given (id)
    CROSS JOIN LATERAL (
        SELECT id AS burial_id, kind_id, key, payload, headers FROM duequeue_buried
        WHERE id = given.id
    ) AS buried
),
revived AS (
    INSERT INTO duequeue_message (id, kind_id, key, payload, headers, due_at, asked_at, created_at)
    SELECT id, kind_id, key, payload, headers, :due_at, :due_at, :now
    FROM input ORDER BY key COLLATE "C"
    ON CONFLICT (kind_id, key) DO NOTHING
    RETURNING id
)
SELECT input.burial_id, input.key FROM input INNER JOIN revived ON revived.id = input.id;

-- name: forget_burials
DELETE FROM duequeue_buried WHERE id = ANY(CAST(:id AS bigint []));

-- name: delete_old_burials
-- A burial that somebody revives at this moment is left alone.
DELETE FROM duequeue_buried
WHERE id = ANY(ARRAY(
    SELECT id FROM duequeue_buried
    WHERE
        kind_id = :kind_id AND buried_at < :before
        AND (SELECT pg_try_advisory_xact_lock(603455129, CAST(:kind_id AS integer)))
    ORDER BY buried_at, id LIMIT :limit
    FOR UPDATE SKIP LOCKED
));

-- name: has_migrations
SELECT to_regclass('duequeue_migration') IS NOT NULL;

-- name: lock_migrations
-- The number only has to be the same in every process. The lock ends with the transaction.
SELECT pg_advisory_xact_lock(6034551291);

-- name: create_migrations
CREATE TABLE IF NOT EXISTS duequeue_migration (
    number integer PRIMARY KEY,
    name text NOT NULL,
    checksum text NOT NULL
);

-- name: hold_undelivered_ticks
-- The messages are locked, and claims skip locked rows, so no claim takes one that is about to be
-- removed or replaced. Without the OFFSET, they might be looked up before the ticks are sorted.
SELECT tick.config_hash, tick.tick_at, tick.key
FROM (
    SELECT config_hash, tick_at, key FROM duequeue_tick
    WHERE kind_id = :kind_id AND prefix = :prefix
    ORDER BY key
    OFFSET 0
) AS tick
WHERE
    (
        SELECT message.id FROM duequeue_message AS message
        WHERE
            message.key = tick.key AND message.kind_id + 0 = :kind_id
            AND message.attempt = 0
        FOR UPDATE
    ) IS NOT NULL;

-- name: remove_tick_messages
--h WITH gone AS (
DELETE FROM duequeue_message
WHERE key = ANY(CAST(:key AS text [])) AND kind_id + 0 = :kind_id
--h RETURNING kind_id, key, asked_at, attempt
--h )
--h INSERT INTO duequeue_history (kind_id, key, asked_at, settled_at, attempts, outcome)
--h SELECT kind_id, key, asked_at, :now, attempt, 'dropped' FROM gone
;

-- name: remove_ticks
DELETE FROM duequeue_tick AS tick
USING
    unnest(CAST(:config_hash AS text []), CAST(:tick_at AS bigint [])) AS gone (config_hash, tick_at)
WHERE
    tick.kind_id = :kind_id AND tick.prefix = :prefix
    AND tick.config_hash = gone.config_hash AND tick.tick_at = gone.tick_at;

-- name: remember_ticks
INSERT INTO duequeue_tick (kind_id, prefix, config_hash, tick_at, key)
SELECT :kind_id, :prefix, config_hash, tick_at, key
FROM unnest(
    CAST(:config_hash AS text []), CAST(:tick_at AS bigint []), CAST(:key AS text [])
) AS created (config_hash, tick_at, key)
ON CONFLICT DO NOTHING;

-- name: forget_ticks
-- The oldest go first, and only a few at a time, so that a backlog does not make one call slow.
DELETE FROM duequeue_tick AS tick
WHERE
    tick.kind_id = :kind_id AND tick.prefix = :prefix AND tick.config_hash = :config_hash
    AND tick.tick_at = ANY(ARRAY(
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
    ))
    AND (
        SELECT message.id FROM duequeue_message AS message
        WHERE message.key = tick.key AND message.kind_id + 0 = tick.kind_id
    ) IS NULL
RETURNING tick_at;

-- name: list_crons
SELECT
    cron.prefix, cron.config_hash, cron.schedule, cron.generation, cron.paused,
    (
        SELECT min(tick.tick_at) FROM duequeue_tick AS tick
        WHERE
            tick.kind_id = cron.kind_id AND tick.prefix = cron.prefix
            AND tick.config_hash = cron.config_hash
            AND (
                SELECT message.id FROM duequeue_message AS message
                WHERE
                    message.key = tick.key AND message.kind_id + 0 = tick.kind_id
                    AND message.attempt = 0
            ) IS NOT NULL
    ) AS next_tick_at,
    (
        SELECT max(tick.tick_at) FROM duequeue_tick AS tick
        WHERE
            tick.kind_id = cron.kind_id AND tick.prefix = cron.prefix
            AND (
                SELECT message.id FROM duequeue_message AS message
                WHERE
                    message.key = tick.key AND message.kind_id + 0 = tick.kind_id
                    AND message.attempt = 0
            ) IS NULL
    ) AS last_tick_at
FROM duequeue_cron AS cron
WHERE cron.kind_id = :kind_id AND cron.installed
ORDER BY cron.prefix;

-- name: remove_messages_with_history
-- This acks. The held messages are looked up lease by lease, in key order, and locked, so that exactly
-- the deleted ones go to the history. Here and below, a part of the statement that only writes runs to its end
-- although nothing reads it.
WITH held AS MATERIALIZED (
    SELECT message.*, lease.delivered_at, lease.handler_ms
    FROM unnest(
        CAST(:id AS bigint []), CAST(:token AS bigint []), CAST(:delivered_at AS bigint []),
        CAST(:handler_ms AS bigint [])
    ) AS lease (id, token, delivered_at, handler_ms)
    CROSS JOIN LATERAL (
        SELECT id, kind_id, key, asked_at, attempt FROM duequeue_message
        WHERE id = lease.id AND lease_token = lease.token
        FOR UPDATE
    ) AS message
),
gone AS (
    DELETE FROM duequeue_message WHERE id = ANY(ARRAY(SELECT id FROM held))
),
kept AS (
    INSERT INTO duequeue_history
        (kind_id, key, asked_at, delivered_at, settled_at, attempts, outcome, handler_ms)
    SELECT kind_id, key, asked_at, delivered_at, :now, attempt, 'acked', handler_ms FROM held
)
SELECT id FROM held;

-- name: remove_with_outcome
-- This is the second half of a burial, or the end of messages that have expired. The caller says how many
-- attempts count, since the claim that found a message expired did not deliver it.
WITH held AS MATERIALIZED (
    SELECT message.*, lease.delivered_at, lease.handler_ms, lease.attempts
    FROM unnest(
        CAST(:id AS bigint []), CAST(:token AS bigint []), CAST(:delivered_at AS bigint []),
        CAST(:handler_ms AS bigint []), CAST(:attempts AS integer [])
    ) AS lease (id, token, delivered_at, handler_ms, attempts)
    CROSS JOIN LATERAL (
        SELECT id, kind_id, key, asked_at FROM duequeue_message
        WHERE id = lease.id AND lease_token = lease.token
            AND (:outcome != 'expired' OR expires_at <= :now)
        FOR UPDATE
    ) AS message
),
gone AS (
    DELETE FROM duequeue_message WHERE id = ANY(ARRAY(SELECT id FROM held))
),
kept AS (
    INSERT INTO duequeue_history
        (kind_id, key, asked_at, delivered_at, settled_at, attempts, outcome, handler_ms)
    SELECT kind_id, key, asked_at, delivered_at, :now, attempts, CAST(:outcome AS text), handler_ms
    FROM held
)
SELECT id FROM held;

-- name: add_history_day
-- Without the day's partition, its row would be refused, and the whole statement with it.
SELECT duequeue_add_history_day(:day);

-- name: read_history_day
-- The kinds come by a join, because a subquery for each row would take fifteen times as long as the rest.
SELECT
    history.id, kind.kind, history.key, history.asked_at, history.delivered_at, history.settled_at,
    history.attempts, history.outcome, history.handler_ms
FROM (
    SELECT id, kind_id, key, asked_at, delivered_at, settled_at, attempts, outcome, handler_ms
    FROM duequeue_history
    WHERE
        settled_at >= :day AND settled_at < :day + 86400000
        AND id > :after_id AND id <= :until_id
    ORDER BY id LIMIT :limit
) AS history
LEFT JOIN duequeue_kind AS kind ON kind.id = history.kind_id
ORDER BY history.id;

-- name: drop_history_days
-- Days that are too old as a whole and hold no rows of other kinds go at once, however large they are.
SELECT duequeue_drop_history_days(:kind_id, :before);

-- name: delete_old_history
-- Here and in delete_old_burials, one process deletes at a time, and others leave it to that one.
DELETE FROM duequeue_history
WHERE
    settled_at < :before AND kind_id = :kind_id
    AND id = ANY(ARRAY(
        SELECT id FROM duequeue_history
        WHERE
            kind_id = :kind_id AND settled_at < :before
            AND (SELECT pg_try_advisory_xact_lock(603455129, CAST(:kind_id AS integer)))
        ORDER BY settled_at, id LIMIT :limit
    ));

-- name: lock_history_day
SELECT duequeue_lock_history_day(:day);

-- name: remove_history_day
SELECT duequeue_remove_history_day(:day);
