-- The instant from which on a message is no longer delivered, or NULL. At the end of the row, and without
-- an index, so that it costs nothing for messages that do not expire.
ALTER TABLE duequeue_message ADD COLUMN expires_at bigint;

-- Drops the days of the history that end before an instant and hold rows of one kind at most. A lock that
-- is not had at once is given up, because those who settle messages would wait behind us, and so is a
-- day that belongs to another owner, or that somebody else drops at this moment. The caller then deletes
-- row by row.
CREATE FUNCTION duequeue_drop_history_days(kind bigint, before bigint) RETURNS void
LANGUAGE plpgsql SET lock_timeout = '250ms'
AS $$
DECLARE
    name text;
    has_others boolean;
    others text := 'SELECT EXISTS (SELECT FROM %I WHERE kind_id < $1) OR EXISTS (SELECT FROM %I WHERE kind_id > $1)';
BEGIN
    FOR name IN
        SELECT relname FROM pg_inherits INNER JOIN pg_class ON pg_class.oid = inhrelid
        WHERE
            inhparent = CAST('duequeue_history' AS regclass)
            AND relname < duequeue_history_partition(before - before % 86400000)
    LOOP
        EXECUTE format(others, name, name) INTO has_others USING kind;
        IF NOT has_others THEN
            EXECUTE format('LOCK TABLE %I IN SHARE ROW EXCLUSIVE MODE', name);
            EXECUTE format(others, name, name) INTO has_others USING kind;
            IF NOT has_others THEN
                EXECUTE format('DROP TABLE %I', name);
            END IF;
        END IF;
    END LOOP;
EXCEPTION WHEN insufficient_privilege OR lock_not_available OR undefined_table THEN
    RETURN;
END
$$;
