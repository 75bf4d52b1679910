-- The queries with which `duequeue doctor` examines an SQLite file. They change nothing.

-- name: examine_file
SELECT
    (SELECT page_count FROM pragma_page_count) AS pages,
    (SELECT freelist_count FROM pragma_freelist_count) AS free_pages,
    (SELECT page_size FROM pragma_page_size) AS page_size;

-- name: examine_journal
PRAGMA journal_mode;

-- name: examine_damage
PRAGMA quick_check(1);

-- name: examine_indexes
SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'duequeue_message';

-- name: examine_poll_plan
EXPLAIN QUERY PLAN
SELECT id FROM duequeue_message
WHERE kind_id = 1 AND due_at <= 0 AND (due_at, id) > (0, 0) AND leased_until <= 0
ORDER BY due_at, id
LIMIT 100;
