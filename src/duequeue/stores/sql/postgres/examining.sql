-- The queries with which `duequeue doctor` examines a PostgreSQL database. They change nothing.

-- name: examine_server
SELECT
    current_setting('server_version') AS version,
    CAST(extract(EPOCH FROM clock_timestamp()) * 1000 AS bigint) AS clock,
    pg_is_in_recovery() AS is_standby,
    current_setting('fsync') AS fsync,
    current_setting('autovacuum') AS autovacuum,
    current_setting('track_counts') AS track_counts,
    CAST(current_setting('max_connections') AS integer) AS most_connections,
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS connections;

-- name: examine_transactions
-- The seconds since the oldest transactions began that keep deleted rows from being cleaned up.
SELECT CAST(coalesce(extract(EPOCH FROM clock_timestamp() - min(began)), 0) AS float8) AS seconds
FROM (
    SELECT xact_start AS began FROM pg_stat_activity
    WHERE datname = current_database() AND backend_xmin IS NOT NULL
    UNION ALL
    SELECT prepared FROM pg_prepared_xacts WHERE database = current_database()
) AS open;

-- name: examine_table
SELECT
    coalesce(array_to_string(pg_class.reloptions, ','), '') AS options,
    coalesce(pg_stat_get_live_tuples(pg_class.oid), 0) AS live,
    coalesce(pg_stat_get_dead_tuples(pg_class.oid), 0) AS dead
FROM pg_class WHERE pg_class.oid = to_regclass('duequeue_message');

-- name: examine_indexes
SELECT
    pg_class.relname AS name, pg_relation_size(pg_class.oid) AS bytes,
    coalesce(pg_stat_get_live_tuples(pg_index.indrelid), 0) AS live
FROM pg_index INNER JOIN pg_class ON pg_class.oid = pg_index.indexrelid
WHERE pg_index.indrelid = to_regclass('duequeue_message') AND pg_index.indisvalid;

-- name: examine_poll_plan
EXPLAIN (FORMAT JSON)
SELECT id FROM duequeue_message
WHERE kind_id = 1 AND due_at <= 0 AND leased_until <= 0
ORDER BY due_at, id
LIMIT 100;
