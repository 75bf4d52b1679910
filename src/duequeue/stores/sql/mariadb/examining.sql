-- The queries with which `duequeue doctor` examines MariaDB or MySQL. They change nothing.

-- name: examine_server
-- The clock in milliseconds since the epoch; the time zone of the server does not matter.
SELECT
    VERSION() AS version,
    TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000 AS clock;

-- name: examine_settings
-- Those that the server has: some are known to MariaDB or to MySQL alone, or under another name.
SHOW SESSION VARIABLES WHERE variable_name IN (
    'binlog_format', 'innodb_flush_log_at_trx_commit', 'innodb_flush_method',
    'innodb_snapshot_isolation', 'log_bin', 'max_allowed_packet', 'max_connections', 'read_only',
    'sync_binlog', 'transaction_isolation', 'tx_isolation'
);

-- name: examine_status
SHOW GLOBAL STATUS WHERE variable_name IN ('Innodb_history_list_length', 'Threads_connected');

-- name: examine_transactions
-- The seconds since the oldest open transaction began, which is given in the zone of the machine.
SELECT
    COALESCE(
        MAX(TIMESTAMPDIFF(SECOND, CONVERT_TZ(trx_started, 'SYSTEM', @@time_zone), NOW())), 0
    ) AS seconds
FROM information_schema.innodb_trx;

-- name: examine_indexes
SELECT DISTINCT index_name AS name FROM information_schema.statistics
WHERE table_schema = DATABASE() AND table_name = 'duequeue_message';
