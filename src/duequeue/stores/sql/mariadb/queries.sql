-- The queries of the store on MariaDB and MySQL. `:name` is a parameter; `now` is always given.
-- A message whose lease ends at -62135596800000, the beginning of the year 1, is not leased, because
-- no clock is earlier. A line that begins with `--h` belongs only to `…_with_history`.
--
-- A query of several statements is one transaction and is sent in one packet. Its reply is the rows of
-- the first statement that returns any. If a statement names `:found`, it is sent after the reply to
-- those before it, with the values of the reply's column `id`, and not at all if there are none. A JSON
-- array of ids stands for a row of each.
--
-- In a QueryEach, a parameter that differs between the sets is the list of its values, with commas between.
-- What stands between `/* each */` and `/* end */` is repeated for each set. `:mark` is a new random number.
--
-- Every locking statement names its index. On a small table the server would otherwise prefer to
-- read all rows, and so would wait for those that others have locked. For the same reason no list in
-- an IN is longer than 500 items, because MariaDB turns longer ones into joins. In a DELETE by a list of
-- ids, MariaDB obeys the index only if another column has a condition, too, so each has one.
--
-- MySQL has no RETURNING, so an offer reads its rows again. On MariaDB, the first statement of an offer
-- returns them instead. An offer of a single message or of many, which often needs only the number of
-- touched rows, does without RETURNING on both servers.

-- name: add_kind
-- Two processes may add the same kind at once; both then find it.
INSERT INTO duequeue_kind (kind) VALUES (:kind) ON DUPLICATE KEY UPDATE id = id;

-- name: count_types
-- Every type of a name, with its number of messages up to a limit; no row if there is only one type.
-- The messages are counted only if they are fewer than the limit.
SELECT
    kind.kind,
    IF(
        (
            SELECT 1 FROM duequeue_message AS message FORCE INDEX (duequeue_message_due)
            WHERE message.kind_id = kind.id LIMIT 1 OFFSET :most
        ) IS NOT NULL,
        :most,
        LEAST(:most, (
            SELECT COUNT(*) FROM duequeue_message AS message FORCE INDEX (duequeue_message_due)
            WHERE message.kind_id = kind.id
        ))
    ) AS live
FROM duequeue_kind AS kind
WHERE LEFT(kind.kind, LENGTH(:prefix)) = :prefix
AND (
    SELECT COUNT(*) FROM duequeue_kind AS other
    WHERE LEFT(other.kind, LENGTH(:prefix)) = :prefix
) > 1
ORDER BY kind.kind;

-- name: identify_database
-- The query does not fail if the tables are missing, because its failure could disturb the caller's
-- transaction.
SELECT
    CONCAT_WS(' ', @@hostname, @@port, @@datadir) AS server,
    DATABASE() AS place,
    (
        SELECT COUNT(*) FROM information_schema.tables
        WHERE table_schema = DATABASE() AND table_name = 'duequeue_message'
    ) AS has_tables;

-- name: find_cluster
-- All nodes of a Galera cluster have the same value. Other servers have none, or zeros.
SHOW GLOBAL STATUS LIKE 'wsrep_cluster_state_uuid';

-- name: current_database
SELECT DATABASE() AS place;

-- name: offer_messages
-- on mysql: offer_messages_on_mysql
-- locks first: lock_offered
-- first is enough
-- alone: first
-- returning: `key`, IF(lease_token = :mark, updated_at IS NULL, NULL) AS created
-- Assignments see what those before them have assigned. So the first one decides, by writing the mark
-- into lease_token, and all others ask for the mark. No lease has this token, so the mark also ends a
-- lease. A new row has no updated_at, an updated one has, and an ignored one does not have the mark.
-- An offer that may not replace a stored message has a number in replaced_attempts. Rows are inserted
-- in the given order, because messages due at the same instant are delivered in insertion order.
INSERT INTO duequeue_message
    (
        kind_id, `key`, payload, headers, due_at, asked_at, created_at, expires_at,
        replaced_attempts, lease_token
    )
VALUES /* each */ (
    :kind_id, :key, :payload, :headers, :due_at, :due_at, :now, :expires_at,
    IF(:replace, NULL, 0), :mark
) /* end */
ON DUPLICATE KEY UPDATE
    lease_token = IF(
        VALUES(replaced_attempts) IS NULL AND (
            duequeue_message.payload != VALUES(payload) OR duequeue_message.asked_at != VALUES(asked_at)
            OR NOT duequeue_message.expires_at <=> VALUES(expires_at)
        ),
        VALUES(lease_token), duequeue_message.lease_token
    ),
--h     replaced_asked_at = IF(duequeue_message.lease_token = VALUES(lease_token), duequeue_message.asked_at, duequeue_message.replaced_asked_at),
--h     replaced_attempts = IF(duequeue_message.lease_token = VALUES(lease_token), duequeue_message.attempt, duequeue_message.replaced_attempts),
    payload = IF(duequeue_message.lease_token = VALUES(lease_token), VALUES(payload), duequeue_message.payload),
    headers = IF(duequeue_message.lease_token = VALUES(lease_token), VALUES(headers), duequeue_message.headers),
    due_at = IF(duequeue_message.lease_token = VALUES(lease_token), VALUES(due_at), duequeue_message.due_at),
    asked_at = IF(duequeue_message.lease_token = VALUES(lease_token), VALUES(asked_at), duequeue_message.asked_at),
    expires_at = IF(duequeue_message.lease_token = VALUES(lease_token), VALUES(expires_at), duequeue_message.expires_at),
    attempt = IF(duequeue_message.lease_token = VALUES(lease_token), 0, duequeue_message.attempt),
    updated_at = IF(duequeue_message.lease_token = VALUES(lease_token), VALUES(created_at), duequeue_message.updated_at),
    leased_until = IF(duequeue_message.lease_token = VALUES(lease_token), -62135596800000, duequeue_message.leased_until);
--h INSERT INTO duequeue_history (kind_id, `key`, asked_at, settled_at, attempts, outcome)
--h SELECT kind_id, `key`, replaced_asked_at, :now, replaced_attempts, 'replaced'
--h FROM duequeue_message FORCE INDEX (duequeue_message_key)
--h WHERE
--h     `key` IN (:key) AND kind_id = :kind_id AND lease_token = :mark
--h     AND updated_at IS NOT NULL;
SELECT `key`, updated_at IS NULL AS created
FROM duequeue_message FORCE INDEX (duequeue_message_key)
WHERE `key` IN (:key) AND kind_id = :kind_id AND lease_token = :mark;

-- name: offer_messages_on_mysql
-- This is offer_messages with a name for the new row, which MySQL has in the place of VALUES().
INSERT INTO duequeue_message
    (
        kind_id, `key`, payload, headers, due_at, asked_at, created_at, expires_at,
        replaced_attempts, lease_token
    )
VALUES /* each */ (
    :kind_id, :key, :payload, :headers, :due_at, :due_at, :now, :expires_at,
    IF(:replace, NULL, 0), :mark
) /* end */
AS new
ON DUPLICATE KEY UPDATE
    lease_token = IF(
        new.replaced_attempts IS NULL AND (
            duequeue_message.payload != new.payload OR duequeue_message.asked_at != new.asked_at
            OR NOT duequeue_message.expires_at <=> new.expires_at
        ),
        new.lease_token, duequeue_message.lease_token
    ),
--h     replaced_asked_at = IF(duequeue_message.lease_token = new.lease_token, duequeue_message.asked_at, duequeue_message.replaced_asked_at),
--h     replaced_attempts = IF(duequeue_message.lease_token = new.lease_token, duequeue_message.attempt, duequeue_message.replaced_attempts),
    payload = IF(duequeue_message.lease_token = new.lease_token, new.payload, duequeue_message.payload),
    headers = IF(duequeue_message.lease_token = new.lease_token, new.headers, duequeue_message.headers),
    due_at = IF(duequeue_message.lease_token = new.lease_token, new.due_at, duequeue_message.due_at),
    asked_at = IF(duequeue_message.lease_token = new.lease_token, new.asked_at, duequeue_message.asked_at),
    expires_at = IF(duequeue_message.lease_token = new.lease_token, new.expires_at, duequeue_message.expires_at),
    attempt = IF(duequeue_message.lease_token = new.lease_token, 0, duequeue_message.attempt),
    updated_at = IF(duequeue_message.lease_token = new.lease_token, new.created_at, duequeue_message.updated_at),
    leased_until = IF(duequeue_message.lease_token = new.lease_token, -62135596800000, duequeue_message.leased_until);
--h INSERT INTO duequeue_history (kind_id, `key`, asked_at, settled_at, attempts, outcome)
--h SELECT kind_id, `key`, replaced_asked_at, :now, replaced_attempts, 'replaced'
--h FROM duequeue_message FORCE INDEX (duequeue_message_key)
--h WHERE
--h     `key` IN (:key) AND kind_id = :kind_id AND lease_token = :mark
--h     AND updated_at IS NOT NULL;
SELECT `key`, updated_at IS NULL AS created
FROM duequeue_message FORCE INDEX (duequeue_message_key)
WHERE `key` IN (:key) AND kind_id = :kind_id AND lease_token = :mark;

-- name: lock_offered
-- After a deadlock, an offer first locks the rows of its keys in the order of their ids, as acks do.
-- An offer by itself locks the entry of a key before its row, and an ack does it the other way round.
SELECT COUNT(*) AS locked FROM (
    SELECT message.id FROM (
        SELECT id FROM duequeue_message FORCE INDEX (duequeue_message_key)
        WHERE `key` IN (:key) AND kind_id = :kind_id
        ORDER BY id LIMIT 1000
    ) AS wanted
    STRAIGHT_JOIN duequeue_message AS message FORCE INDEX (PRIMARY) ON message.id = wanted.id
    FOR UPDATE
) AS held;

-- name: claim_messages
-- looks first: find_claimable
-- The last digit of the new token says how many leases in a row the message has lost, as port/fencing.py
-- explains. A message that was never claimed may have the mark of an offer as its token.
-- The watermark is two ranges, since the servers do not use a comparison of rows as a bound. Neither of
-- them may be empty, because MariaDB would leave the empty one out, would not see that the other one
-- is in order, and would sort, and so lock, every message that is due. A claim locks the entries and rows
-- that it takes, and on MariaDB also those of leases in between. The last column is the response to an
-- earlier message with the same key, which the caller deletes. It is read with a lock, because a claim
-- sees messages that are newer than its snapshot.
SELECT
    due_at, id, `key`, payload, asked_at, LEAST(attempt, 2147483646) + 1 AS attempt, headers, expires_at,
    :token + CASE
        WHEN attempt = 0 THEN 0
        WHEN lease_token <= 0 THEN -lease_token
        WHEN MOD(lease_token, 10) >= 5 THEN 4
        ELSE LEAST(MOD(lease_token, 10) + 1, 3)
    END AS new_token,
    (
        SELECT old.id FROM duequeue_response AS old FORCE INDEX (duequeue_response_key)
        WHERE old.`key` = duequeue_message.`key` AND old.kind_id = :kind_id
        LOCK IN SHARE MODE
    ) AS old_response
FROM duequeue_message FORCE INDEX (duequeue_message_due)
WHERE
    (
        kind_id = :kind_id AND due_at = :after_due AND id > :after_id
        OR kind_id = :kind_id AND due_at > :after_due AND due_at <= GREATEST(:now, :after_due + 1)
    )
    AND due_at + 0 <= :now AND leased_until <= :now
ORDER BY due_at, id
LIMIT :limit
FOR UPDATE SKIP LOCKED;
UPDATE duequeue_message FORCE INDEX (PRIMARY)
SET
    leased_until = :until,
    lease_token = :token + CASE
        WHEN attempt = 0 THEN 0
        WHEN lease_token <= 0 THEN -lease_token
        WHEN MOD(lease_token, 10) >= 5 THEN 4
        ELSE LEAST(MOD(lease_token, 10) + 1, 3)
    END,
    attempt = LEAST(attempt, 2147483646) + 1
WHERE id IN (:found);

-- name: find_claimable
-- A claim from the beginning starts at this place. It is read without locks, so that the leases before
-- it are not locked.
SELECT due_at, id FROM duequeue_message FORCE INDEX (duequeue_message_due)
WHERE kind_id = :kind_id AND due_at <= :now AND leased_until <= :now
ORDER BY due_at, id LIMIT 1;

-- name: claim_expired
-- This leases the expired ones among the messages that are due first, so that one more statement can
-- remove them. Only these rows are locked, and only if they are still expired then.
SELECT
    message.id, message.`key`, message.attempt,
    (
        SELECT old.id FROM duequeue_response AS old FORCE INDEX (duequeue_response_key)
        WHERE old.`key` = message.`key` AND old.kind_id = :kind_id
        LOCK IN SHARE MODE
    ) AS old_response
FROM (
    SELECT id, expires_at FROM duequeue_message FORCE INDEX (duequeue_message_due)
    WHERE kind_id = :kind_id AND due_at <= :now AND leased_until <= :now
    ORDER BY due_at, id
    LIMIT :limit
) AS first
STRAIGHT_JOIN duequeue_message AS message FORCE INDEX (PRIMARY) ON message.id = first.id
WHERE first.expires_at <= :now AND message.leased_until <= :now AND message.expires_at <= :now
FOR UPDATE SKIP LOCKED;
UPDATE duequeue_message FORCE INDEX (PRIMARY) SET leased_until = :until, lease_token = :token
WHERE id IN (:found);

-- name: remove_messages
-- alone: last
-- This acks, and it is the second half of a burial.
SELECT JSON_ARRAYAGG(id) AS ids FROM duequeue_message FORCE INDEX (PRIMARY)
WHERE (id, lease_token) IN (/* each */ (:id, :token) /* end */) FOR UPDATE;
--h INSERT INTO duequeue_history
--h     (kind_id, `key`, asked_at, delivered_at, settled_at, attempts, outcome, handler_ms)
--h SELECT
--h     kind_id, `key`, asked_at, ELT(FIELD(id, :id), :delivered_at), :now, attempt, 'acked',
--h     ELT(FIELD(id, :id), :handler_ms)
--h FROM duequeue_message FORCE INDEX (PRIMARY) WHERE (id, lease_token) IN (/* each */ (:id, :token) /* end */);
DELETE held FROM duequeue_message AS held FORCE INDEX (PRIMARY) WHERE (id, lease_token) IN (/* each */ (:id, :token) /* end */);

-- name: remove_expired
SELECT JSON_ARRAYAGG(id) AS ids FROM duequeue_message FORCE INDEX (PRIMARY)
WHERE (id, lease_token) IN (/* each */ (:id, :token) /* end */) AND expires_at <= :now FOR UPDATE;
DELETE held FROM duequeue_message AS held FORCE INDEX (PRIMARY)
WHERE (id, lease_token) IN (/* each */ (:id, :token) /* end */) AND expires_at <= :now;

-- name: release_messages
SELECT JSON_ARRAYAGG(id) AS ids FROM duequeue_message FORCE INDEX (PRIMARY)
WHERE (id, lease_token) IN (/* each */ (:id, :token) /* end */) FOR UPDATE;
UPDATE duequeue_message FORCE INDEX (PRIMARY)
SET due_at = ELT(FIELD(id, :id), :due_at), leased_until = -62135596800000, lease_token = 0
WHERE (id, lease_token) IN (/* each */ (:id, :token) /* end */);

-- name: give_back_messages
SELECT JSON_ARRAYAGG(id) AS ids FROM duequeue_message FORCE INDEX (PRIMARY)
WHERE (id, lease_token) IN (/* each */ (:id, :token) /* end */) FOR UPDATE;
UPDATE duequeue_message FORCE INDEX (PRIMARY)
SET leased_until = -62135596800000, lease_token = -MOD(lease_token, 5), attempt = attempt - 1
WHERE (id, lease_token) IN (/* each */ (:id, :token) /* end */);

-- name: extend_leases
-- A lease must not end while its extension waits for an offer or for somebody else's lock, so rows
-- that are locked are left out.
SELECT JSON_ARRAYAGG(id) AS ids FROM duequeue_message FORCE INDEX (PRIMARY)
WHERE (id, lease_token) IN (/* each */ (:id, :token) /* end */) FOR UPDATE SKIP LOCKED;
UPDATE duequeue_message FORCE INDEX (PRIMARY) SET leased_until = :until WHERE id IN (:found);

-- name: find_held
SELECT JSON_ARRAYAGG(id) AS ids FROM duequeue_message FORCE INDEX (PRIMARY)
WHERE (id, lease_token) IN (/* each */ (:id, :token) /* end */);

-- name: park_messages
-- The rows stay locked, so that no offer changes one before the same transaction removes it. They are
-- added in the order in which they are given.
SELECT JSON_ARRAYAGG(id) AS ids FROM duequeue_message FORCE INDEX (PRIMARY)
WHERE (id, lease_token) IN (/* each */ (:id, :token) /* end */) FOR UPDATE;
INSERT INTO duequeue_buried
    (kind_id, `key`, payload, headers, asked_at, attempts, reason, buried_at)
SELECT
    kind_id, `key`, payload, headers, asked_at, ELT(FIELD(id, :id), :attempts), ELT(FIELD(id, :id), :reason), :now
FROM duequeue_message FORCE INDEX (PRIMARY) WHERE (id, lease_token) IN (/* each */ (:id, :token) /* end */) ORDER BY FIELD(id, :id);

-- name: find_message
-- This finds the live message and the newest burial in one statement, because between two statements
-- one could become the other. A derived table would be a temporary one on disk for its payload.
SELECT
    payload, asked_at, attempt, headers, due_at, leased_until, expires_at,
    NULL AS reason, NULL AS buried_at, NULL AS burial_id
FROM duequeue_message FORCE INDEX (duequeue_message_key)
WHERE `key` = :key AND kind_id = :kind_id
UNION ALL
SELECT payload, asked_at, attempts, headers, NULL, NULL, NULL, reason, buried_at, id
FROM duequeue_buried FORCE INDEX (PRIMARY)
WHERE id = (
    SELECT MAX(id) FROM duequeue_buried FORCE INDEX (duequeue_buried_key)
    WHERE kind_id = :kind_id AND `key` = :key
);

-- name: write_responses
-- The rows of the messages stay locked, so that exactly those that get a response are removed by the same
-- transaction. A response is either a payload or the reason why there is none.
SELECT JSON_ARRAYAGG(id) AS ids FROM duequeue_message FORCE INDEX (PRIMARY)
WHERE (id, lease_token) IN (/* each */ (:id, :token) /* end */) FOR UPDATE;
REPLACE INTO duequeue_response (kind_id, `key`, payload, reason, responded_at, expires_at)
SELECT kind_id, `key`, ELT(FIELD(id, :id), :payload), ELT(FIELD(id, :id), :reason), :now, ELT(FIELD(id, :id), :expires_at)
FROM duequeue_message FORCE INDEX (PRIMARY) WHERE (id, lease_token) IN (/* each */ (:id, :token) /* end */);

-- name: refuse_messages
-- This is write_responses for messages that are dropped by their keys. They get a token that no lease has,
-- by which drop_message finds them. If there is none, nothing is locked, so somebody may offer the key
-- before the next statement, and that message stays.
UPDATE duequeue_message FORCE INDEX (duequeue_message_key) SET lease_token = :token
WHERE `key` IN (:key) AND kind_id = :kind_id;
REPLACE INTO duequeue_response (kind_id, `key`, reason, responded_at, expires_at)
SELECT kind_id, `key`, :reason, :now, :expires_at
FROM duequeue_message FORCE INDEX (duequeue_message_key)
WHERE `key` IN (:key) AND kind_id = :kind_id AND lease_token = :token;

-- name: find_response
-- A message in the queue comes first, because then every response is to an earlier one.
SELECT TRUE AS is_pending, NULL AS payload, NULL AS reason, created_at
FROM duequeue_message FORCE INDEX (duequeue_message_key)
WHERE `key` = :key AND kind_id = :kind_id
UNION ALL
SELECT FALSE, payload, reason, responded_at
FROM duequeue_response FORCE INDEX (duequeue_response_key)
WHERE `key` = :key AND kind_id = :kind_id AND expires_at > :now;

-- name: forget_old_responses
DELETE old FROM duequeue_response AS old FORCE INDEX (PRIMARY)
WHERE id IN (:id) AND kind_id = :kind_id AND `key` IN (:key);

-- name: forget_batch_responses
-- This is forget_old_responses for a micro-batch of Spark, whose messages this transaction has leased.
DELETE old
FROM duequeue_stream_batch AS batch
STRAIGHT_JOIN JSON_TABLE(batch.ids, '$[*]' COLUMNS (id bigint PATH '$')) AS listed
STRAIGHT_JOIN duequeue_message AS message FORCE INDEX (PRIMARY) ON message.id = listed.id
STRAIGHT_JOIN duequeue_response AS old FORCE INDEX (duequeue_response_key)
    ON old.`key` = message.`key` AND old.kind_id = :kind_id
WHERE batch.kind_id = :kind_id AND batch.consumer = :consumer AND batch.sequence = :sequence;

-- name: forget_response
-- While a message with the key is in the queue, there is no response to it.
DELETE response FROM duequeue_response AS response FORCE INDEX (duequeue_response_key)
WHERE
    `key` = :key AND kind_id = :kind_id AND expires_at > :now
    AND NOT EXISTS (
        SELECT 1 FROM duequeue_message AS message FORCE INDEX (duequeue_message_key)
        WHERE message.`key` = :key AND message.kind_id = :kind_id
    );

-- name: forget_all_responses
DELETE response FROM duequeue_response AS response FORCE INDEX (duequeue_response_expiry)
WHERE kind_id = :kind_id;

-- name: sweep_responses
-- Responses that another transaction is changing are left alone.
SELECT id FROM duequeue_response FORCE INDEX (duequeue_response_expiry)
WHERE kind_id = :kind_id AND expires_at <= :now
ORDER BY expires_at LIMIT :limit
FOR UPDATE SKIP LOCKED;
DELETE response FROM duequeue_response AS response FORCE INDEX (PRIMARY)
WHERE id IN (:found) AND kind_id = :kind_id;

-- name: list_messages
-- This walks over the index of due times, and compares the prefix of each message.
SELECT id, `key`, payload, asked_at, due_at, leased_until, attempt, headers, expires_at
FROM duequeue_message FORCE INDEX (duequeue_message_due)
WHERE
    (
        kind_id = :kind_id AND due_at = :after_due AND id > :after_id
        OR kind_id = :kind_id AND due_at > :after_due
        AND due_at <= GREATEST(:due_until, :after_due + 1)
    )
    AND due_at + 0 <= :due_until
    AND leased_until >= :leased_from AND leased_until <= :leased_until
    AND LEFT(`key`, LENGTH(:prefix)) = :prefix
ORDER BY due_at, id
LIMIT :limit;

-- name: count_keys
-- The keys of all queues are counted, because checking the queue of each key would cost more.
SELECT COUNT(*) FROM (
    SELECT 1 FROM duequeue_message FORCE INDEX (duequeue_message_key)
    WHERE `key` >= :first_key AND `key` <= :last_key AND :kind_id IS NOT NULL
    LIMIT :limit
) AS found;

-- name: list_messages_by_key
-- Only the places are sorted, and not the payloads of all keys with the prefix.
SELECT
    message.id, message.`key`, message.payload, message.asked_at, message.due_at,
    message.leased_until, message.attempt, message.headers, message.expires_at
FROM (
    SELECT id FROM duequeue_message FORCE INDEX (duequeue_message_key)
    WHERE
        `key` >= :first_key AND `key` <= :last_key AND kind_id = :kind_id
        AND (due_at > :after_due OR due_at = :after_due AND id > :after_id) AND due_at <= :due_until
        AND leased_until >= :leased_from AND leased_until <= :leased_until
    ORDER BY due_at, id
    LIMIT :limit
) AS found
STRAIGHT_JOIN duequeue_message AS message FORCE INDEX (PRIMARY) ON message.id = found.id
ORDER BY message.due_at, message.id;

-- name: reschedule_message
-- A row that is found changes, because the new token is not the old one.
UPDATE duequeue_message FORCE INDEX (duequeue_message_key)
SET due_at = :due_at, asked_at = :due_at, updated_at = :now,
    leased_until = -62135596800000, lease_token = :mark
WHERE `key` = :key AND kind_id = :kind_id AND (expires_at IS NULL OR expires_at > :due_at);

-- name: drop_message
-- This deletes what refuse_messages has given the token.
SELECT id FROM duequeue_message FORCE INDEX (duequeue_message_key)
WHERE `key` IN (:key) AND kind_id = :kind_id AND lease_token = :token
FOR UPDATE;
--h INSERT INTO duequeue_history (kind_id, `key`, asked_at, settled_at, attempts, outcome)
--h SELECT kind_id, `key`, asked_at, :now, attempt, 'dropped'
--h FROM duequeue_message FORCE INDEX (duequeue_message_key)
--h WHERE `key` IN (:key) AND kind_id = :kind_id AND lease_token = :token;
DELETE message FROM duequeue_message AS message FORCE INDEX (duequeue_message_key)
WHERE `key` IN (:key) AND kind_id = :kind_id AND lease_token = :token;

-- name: drop_messages
-- With a history, messages that are offered meanwhile stay, since only those that were locked have the mark.
--h UPDATE duequeue_message FORCE INDEX (duequeue_message_due) SET lease_token = :mark
--h WHERE kind_id = :kind_id;
--h INSERT INTO duequeue_history (kind_id, `key`, asked_at, settled_at, attempts, outcome)
--h SELECT kind_id, `key`, asked_at, :now, attempt, 'dropped'
--h FROM duequeue_message FORCE INDEX (duequeue_message_due)
--h WHERE kind_id = :kind_id AND lease_token = :mark;
--h SELECT COUNT(*) FROM duequeue_message FORCE INDEX (duequeue_message_due)
--h WHERE kind_id = :kind_id AND lease_token = :mark;
DELETE message FROM duequeue_message AS message FORCE INDEX (duequeue_message_due)
WHERE kind_id = :kind_id
--h AND lease_token = :mark
;

-- name: count_messages
SELECT
    CAST(COALESCE(SUM(leased_until <= :now AND due_at <= :now), 0) AS SIGNED) AS due,
    CAST(COALESCE(SUM(leased_until > :now), 0) AS SIGNED) AS leased,
    CAST(COALESCE(SUM(leased_until <= :now AND due_at > :now), 0) AS SIGNED) AS future,
    (
        SELECT COUNT(*) FROM duequeue_buried FORCE INDEX (duequeue_buried_time)
        WHERE kind_id = :kind_id
    ) AS buried,
    MIN(IF(leased_until <= :now AND due_at <= :now, due_at, NULL)) AS oldest_due_at,
    MIN(IF(leased_until <= :now AND due_at > :now, due_at, NULL)) AS next_due_at
FROM duequeue_message FORCE INDEX (duequeue_message_due) WHERE kind_id = :kind_id;

-- name: count_due
-- Messages that are not due yet are counted in the index alone, because nobody can hold them.
SELECT (due_at - :begins_at) DIV :length AS bucket, COUNT(*) AS messages
FROM duequeue_message FORCE INDEX (duequeue_message_due)
WHERE kind_id = :kind_id AND due_at > :now AND due_at < :until
GROUP BY bucket
UNION ALL
SELECT -1, COUNT(*) FROM duequeue_message FORCE INDEX (duequeue_message_due)
WHERE kind_id = :kind_id AND due_at <= :now AND leased_until <= :now;

-- name: next_due
SELECT due_at FROM duequeue_message FORCE INDEX (duequeue_message_due)
WHERE kind_id = :kind_id AND due_at > :now
ORDER BY due_at LIMIT 1;

-- name: earliest_due
-- An idle consumer runs this at every regular look. It reads once and writes nothing.
SELECT due_at FROM duequeue_message FORCE INDEX (duequeue_message_due)
WHERE kind_id = :kind_id AND leased_until <= :now
ORDER BY due_at, id LIMIT 1;

-- name: list_buried
SELECT `key`, payload, asked_at, attempts, reason, buried_at, headers, id
FROM duequeue_buried FORCE INDEX (duequeue_buried_time)
WHERE
    (
        kind_id = :kind_id AND buried_at = :after_at AND id > :after_id
        OR kind_id = :kind_id AND buried_at > :after_at
        AND buried_at <= GREATEST(:until_at, :after_at + 1)
    )
    AND (buried_at + 0 < :until_at OR buried_at + 0 = :until_at AND id <= :until_id)
    AND LOCATE(:reason, reason) > 0
ORDER BY buried_at, id LIMIT :limit;

-- name: last_burial
SELECT buried_at, id FROM duequeue_buried FORCE INDEX (duequeue_buried_time)
WHERE kind_id = :kind_id
ORDER BY buried_at DESC, id DESC LIMIT 1;

-- name: lock_buried
-- The row stays locked until the transaction ends, so that a burial is revived only once.
SELECT id, buried_at FROM duequeue_buried FORCE INDEX (duequeue_buried_key)
WHERE
    kind_id = :kind_id AND `key` = :key
    AND (:id IS NULL OR (id = :id AND buried_at = :buried_at))
ORDER BY id DESC LIMIT 1
FOR UPDATE;

-- name: lock_burials
-- Of each key only the newest burial counts. A burial that is locked is being revived by somebody else.
SELECT id, buried_at FROM duequeue_buried AS buried FORCE INDEX (duequeue_buried_time)
WHERE
    (
        kind_id = :kind_id AND buried_at = :after_at AND id > :after_id
        OR kind_id = :kind_id AND buried_at > :after_at
        AND buried_at <= GREATEST(:until_at, :after_at + 1)
    )
    AND (buried_at + 0 < :until_at OR buried_at + 0 = :until_at AND id <= :until_id)
    AND LOCATE(:reason, reason) > 0
    AND (
        SELECT newer.id FROM duequeue_buried AS newer FORCE INDEX (duequeue_buried_key)
        WHERE
            newer.kind_id = :kind_id AND newer.`key` = buried.`key` AND newer.id > buried.id
            AND LOCATE(:reason, newer.reason) > 0
        LIMIT 1
    ) IS NULL
ORDER BY buried_at, id LIMIT :limit
FOR UPDATE SKIP LOCKED;

-- name: revive_burials
INSERT INTO duequeue_message
    (kind_id, `key`, payload, headers, due_at, asked_at, created_at, lease_token)
SELECT kind_id, `key`, payload, headers, :due_at, :due_at, :now, :mark
FROM duequeue_buried FORCE INDEX (PRIMARY) WHERE id IN (:id) ORDER BY FIELD(id, :id)
ON DUPLICATE KEY UPDATE duequeue_message.kind_id = duequeue_message.kind_id;
SELECT buried.id, buried.`key`
FROM duequeue_buried AS buried FORCE INDEX (PRIMARY)
STRAIGHT_JOIN duequeue_message AS message FORCE INDEX (duequeue_message_key)
    ON message.`key` = buried.`key` AND message.kind_id = buried.kind_id
WHERE buried.id IN (:id) AND message.lease_token = :mark;

-- name: forget_burials
DELETE buried FROM duequeue_buried AS buried FORCE INDEX (PRIMARY)
WHERE id IN (:id) AND kind_id > 0;

-- name: delete_buried
DELETE buried FROM duequeue_buried AS buried FORCE INDEX (PRIMARY)
WHERE id = :id AND buried_at = :buried_at AND kind_id = :kind_id;

-- name: purge_buried
DELETE buried FROM duequeue_buried AS buried FORCE INDEX (duequeue_buried_time)
WHERE kind_id = :kind_id AND buried_at < :before;

-- name: delete_old_burials
-- A burial that somebody revives or deletes at this moment is left alone.
SELECT id FROM duequeue_buried FORCE INDEX (duequeue_buried_time)
WHERE kind_id = :kind_id AND buried_at < :before
ORDER BY buried_at, id LIMIT :limit
FOR UPDATE SKIP LOCKED;
DELETE buried FROM duequeue_buried AS buried FORCE INDEX (PRIMARY)
WHERE id IN (:found) AND kind_id = :kind_id;

-- name: has_migrations
SELECT COUNT(*) FROM information_schema.tables
WHERE table_schema = DATABASE() AND table_name = 'duequeue_migration';

-- name: lock_migrations
-- undone by: unlock_migrations
-- The name of a lock belongs to the whole server and has at most 64 characters. The session releases
-- the lock at the end of the operation.
SELECT COALESCE(GET_LOCK(CONCAT('duequeue.migrate.', LEFT(SHA2(DATABASE(), 256), 16)), 5), 0) AS locked;

-- name: unlock_migrations
DO RELEASE_ALL_LOCKS();

-- name: create_migrations
CREATE TABLE IF NOT EXISTS duequeue_migration (
    number int NOT NULL PRIMARY KEY,
    name varbinary(200) NOT NULL,
    checksum varbinary(40) NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- name: lock_cron
-- This update changes nothing, but it locks the row.
INSERT INTO duequeue_cron
    (kind_id, prefix, config_hash, schedule, generation, installed, paused)
VALUES (:kind_id, :prefix, '', '', 0, FALSE, FALSE)
ON DUPLICATE KEY UPDATE generation = generation;
SELECT config_hash, schedule, generation, installed, paused, created_until
FROM duequeue_cron FORCE INDEX (PRIMARY)
WHERE kind_id = :kind_id AND prefix = :prefix
FOR UPDATE;

-- name: save_cron
UPDATE duequeue_cron FORCE INDEX (PRIMARY)
SET config_hash = :config_hash, schedule = :schedule, generation = :generation,
    installed = :installed, paused = :paused, created_until = :created_until
WHERE kind_id = :kind_id AND prefix = :prefix;

-- name: hold_undelivered_ticks
-- The messages are locked, and claims skip locked rows, so no claim takes one that is about to be
-- removed or replaced.
SELECT tick.config_hash, tick.tick_at, tick.`key`
FROM (
    SELECT config_hash, tick_at, `key` FROM duequeue_tick FORCE INDEX (PRIMARY)
    WHERE kind_id = :kind_id AND prefix = :prefix
    ORDER BY `key` LIMIT 1000000
) AS tick
STRAIGHT_JOIN duequeue_message AS message FORCE INDEX (duequeue_message_key)
    ON message.`key` = tick.`key` AND message.kind_id = :kind_id
WHERE message.attempt = 0
FOR UPDATE;

-- name: remove_tick_messages
--h SELECT id FROM duequeue_message FORCE INDEX (duequeue_message_key)
--h WHERE `key` IN (:key) AND kind_id = :kind_id
--h FOR UPDATE;
--h INSERT INTO duequeue_history (kind_id, `key`, asked_at, settled_at, attempts, outcome)
--h SELECT kind_id, `key`, asked_at, :now, attempt, 'dropped'
--h FROM duequeue_message FORCE INDEX (duequeue_message_key)
--h WHERE `key` IN (:key) AND kind_id = :kind_id;
DELETE message FROM duequeue_message AS message FORCE INDEX (duequeue_message_key)
WHERE `key` IN (:key) AND kind_id = :kind_id;

-- name: remove_ticks
DELETE tick FROM duequeue_tick AS tick FORCE INDEX (PRIMARY)
WHERE
    kind_id = :kind_id AND prefix = :prefix
    AND (config_hash, tick_at) IN (/* each */ (:config_hash, :tick_at) /* end */);

-- name: remember_ticks
INSERT INTO duequeue_tick (kind_id, prefix, config_hash, tick_at, `key`)
VALUES /* each */ (:kind_id, :prefix, :config_hash, :tick_at, :key) /* end */
ON DUPLICATE KEY UPDATE tick_at = tick_at;

-- name: release_tick
-- No message has an empty key.
UPDATE duequeue_tick FORCE INDEX (PRIMARY) SET `key` = ''
WHERE
    kind_id = :kind_id AND prefix = :prefix AND config_hash = :config_hash
    AND tick_at = :tick_at;

-- name: forget_ticks
-- The oldest go first, and only a few at a time, so that a backlog does not make one call slow.
SELECT tick.id FROM (
    SELECT old.tick_at AS id, old.`key` FROM duequeue_tick AS old FORCE INDEX (PRIMARY)
    WHERE
        old.kind_id = :kind_id AND old.prefix = :prefix AND old.config_hash = :config_hash
        AND old.tick_at <= (
            SELECT kept.tick_at FROM duequeue_tick AS kept FORCE INDEX (PRIMARY)
            WHERE
                kept.kind_id = :kind_id AND kept.prefix = :prefix
                AND kept.config_hash = :config_hash AND kept.tick_at <= :now
            ORDER BY kept.tick_at DESC LIMIT 1 OFFSET :keep
        )
    ORDER BY old.tick_at LIMIT :limit
) AS tick
WHERE NOT EXISTS (
    SELECT 1 FROM duequeue_message AS message FORCE INDEX (duequeue_message_key)
    WHERE message.`key` = tick.`key` AND message.kind_id = :kind_id
);
DELETE tick FROM duequeue_tick AS tick FORCE INDEX (PRIMARY)
WHERE
    kind_id = :kind_id AND prefix = :prefix AND config_hash = :config_hash
    AND tick_at IN (:found);

-- name: raise_forgotten
INSERT INTO duequeue_forgotten_tick (kind_id, prefix, config_hash, forgotten_until)
VALUES (:kind_id, :prefix, :config_hash, :forgotten_until)
ON DUPLICATE KEY UPDATE
    forgotten_until = GREATEST(forgotten_until, :forgotten_until);

-- name: list_crons
SELECT
    cron.prefix, cron.config_hash, cron.schedule, cron.generation, cron.paused,
    (
        SELECT MIN(tick.tick_at) FROM duequeue_tick AS tick
        STRAIGHT_JOIN duequeue_message AS message FORCE INDEX (duequeue_message_key)
            ON message.`key` = tick.`key` AND message.kind_id = tick.kind_id
        WHERE
            tick.kind_id = cron.kind_id AND tick.prefix = cron.prefix
            AND tick.config_hash = cron.config_hash AND message.attempt = 0
    ) AS next_tick_at,
    (
        SELECT MAX(tick.tick_at) FROM duequeue_tick AS tick
        WHERE
            tick.kind_id = cron.kind_id AND tick.prefix = cron.prefix
            AND NOT EXISTS (
                SELECT 1 FROM duequeue_message AS message FORCE INDEX (duequeue_message_key)
                WHERE
                    message.`key` = tick.`key` AND message.kind_id = tick.kind_id
                    AND message.attempt = 0
            )
    ) AS last_tick_at
FROM duequeue_cron AS cron
WHERE cron.kind_id = :kind_id AND cron.installed
ORDER BY cron.prefix;

-- name: remove_with_outcome
-- This is the second half of a burial, or the end of messages that have expired. The caller says how many
-- attempts count, since the claim that found a message expired did not deliver it.
SELECT JSON_ARRAYAGG(id) AS ids FROM duequeue_message FORCE INDEX (PRIMARY)
WHERE (id, lease_token) IN (/* each */ (:id, :token) /* end */) AND (:outcome != 'expired' OR expires_at <= :now) FOR UPDATE;
INSERT INTO duequeue_history
    (kind_id, `key`, asked_at, delivered_at, settled_at, attempts, outcome, handler_ms)
SELECT
    kind_id, `key`, asked_at, ELT(FIELD(id, :id), :delivered_at), :now, ELT(FIELD(id, :id), :attempts),
    :outcome, ELT(FIELD(id, :id), :handler_ms)
FROM duequeue_message FORCE INDEX (PRIMARY)
WHERE (id, lease_token) IN (/* each */ (:id, :token) /* end */) AND (:outcome != 'expired' OR expires_at <= :now);
DELETE held FROM duequeue_message AS held FORCE INDEX (PRIMARY)
WHERE (id, lease_token) IN (/* each */ (:id, :token) /* end */) AND (:outcome != 'expired' OR expires_at <= :now);

-- name: list_history
SELECT id, `key`, asked_at, delivered_at, settled_at, attempts, outcome, handler_ms
FROM duequeue_history FORCE INDEX (duequeue_history_time)
WHERE kind_id = :kind_id AND (:key IS NULL OR `key` = :key)
ORDER BY settled_at DESC, id DESC LIMIT :limit;

-- name: list_history_days
-- For each kind, the index is searched for the first row, then for the first one on a later day.
WITH RECURSIVE found (kind_id, settled_at) AS (
    SELECT
        kind.id,
        (SELECT MIN(first.settled_at) FROM duequeue_history AS first WHERE first.kind_id = kind.id)
    FROM duequeue_kind AS kind
    UNION ALL
    SELECT
        found.kind_id,
        (
            SELECT MIN(next.settled_at) FROM duequeue_history AS next
            WHERE
                next.kind_id = found.kind_id
                AND next.settled_at
                >= found.settled_at - MOD(found.settled_at + 62135596800000, 86400000) + 86400000
        )
    FROM found WHERE found.settled_at IS NOT NULL
)
SELECT
    found.settled_at - MOD(found.settled_at + 62135596800000, 86400000) AS day,
    (SELECT kind.kind FROM duequeue_kind AS kind WHERE kind.id = found.kind_id) AS kind
FROM found WHERE found.settled_at IS NOT NULL
ORDER BY day, kind;

-- name: read_history_day
SELECT
    history.id, kind.kind, history.`key`, history.asked_at, history.delivered_at,
    history.settled_at, history.attempts, history.outcome, history.handler_ms
FROM (
    SELECT * FROM duequeue_history FORCE INDEX (PRIMARY)
    WHERE
        settled_at >= :day AND settled_at < :day + 86400000
        AND id > :after_id AND id <= :until_id
    ORDER BY id LIMIT :limit
) AS history
LEFT JOIN duequeue_kind AS kind ON kind.id = history.kind_id
ORDER BY history.id;

-- name: delete_old_history
-- Rows that another process deletes at this moment are left to it.
SELECT id FROM duequeue_history FORCE INDEX (duequeue_history_time)
WHERE kind_id = :kind_id AND settled_at < :before
ORDER BY settled_at, id LIMIT :limit
FOR UPDATE SKIP LOCKED;
DELETE settled FROM duequeue_history AS settled FORCE INDEX (PRIMARY)
WHERE id IN (:found) AND settled_at < :before AND kind_id = :kind_id;

-- name: list_partitions
-- The bound of a partition is the first instant that is no longer in it.
SELECT partition_name AS name, CAST(partition_description AS SIGNED) AS bound
FROM information_schema.partitions
WHERE table_schema = DATABASE() AND table_name = 'duequeue_history'
ORDER BY partition_ordinal_position;

-- name: add_partitions
-- The first of them takes the days for which it is too late to have a partition of their own.
ALTER TABLE duequeue_history ADD PARTITION (
    PARTITION before_:first_number VALUES LESS THAN (:first_day),
    /* each */ PARTITION day_:number VALUES LESS THAN (:bound) /* end */
);

-- name: add_days
ALTER TABLE duequeue_history ADD PARTITION (
    /* each */ PARTITION day_:number VALUES LESS THAN (:bound) /* end */
);

-- name: holds_other_kinds
-- A table that is locked as a whole may be named only once.
SELECT COALESCE(MIN(kind_id) < :kind_id OR MAX(kind_id) > :kind_id, FALSE)
FROM duequeue_history PARTITION (day_:number);

-- name: next_history_id
SELECT GREATEST(
    (SELECT COALESCE(MAX(id), 0) + 1 FROM duequeue_history),
    COALESCE((
        SELECT auto_increment FROM information_schema.tables
        WHERE table_schema = DATABASE() AND table_name = 'duequeue_history'
    ), 1)
) AS next_id;

-- name: keep_history_ids
-- The server forgets the ids of a dropped partition, but an id that was archived must not come again.
ALTER TABLE duequeue_history AUTO_INCREMENT = :next_id;

-- name: drop_partition
ALTER TABLE duequeue_history DROP PARTITION day_:number;

-- name: lock_history
-- undone by: unlock_history
-- The session unlocks the table at the end of the operation.
LOCK TABLES duequeue_history WRITE;

-- name: unlock_history
UNLOCK TABLES;

-- name: delete_history_day
DELETE FROM duequeue_history WHERE settled_at >= :day AND settled_at < :day + 86400000;

-- name: bound_history_rows
SELECT COALESCE(MIN(id), 0), COALESCE(MAX(id), 0), COUNT(*)
FROM (
    SELECT id FROM duequeue_history FORCE INDEX (PRIMARY)
    WHERE
        settled_at >= :day AND settled_at < :day + 86400000
        AND id >= :first_id AND id <= :last_id
    FOR UPDATE
) AS held;

-- name: delete_history_rows
DELETE settled FROM duequeue_history AS settled FORCE INDEX (PRIMARY)
WHERE
    settled_at >= :day AND settled_at < :day + 86400000
    AND id >= :first_id AND id <= :last_id;

-- name: count_burial_reasons
SELECT kind.kind, buried.reason, COUNT(*), MAX(buried.buried_at)
FROM duequeue_kind AS kind
INNER JOIN duequeue_buried AS buried ON buried.kind_id = kind.id
WHERE buried.buried_at >= :since
GROUP BY kind.kind, buried.reason
ORDER BY COUNT(*) DESC, MAX(buried.buried_at) DESC, kind.kind, buried.reason LIMIT :limit;
