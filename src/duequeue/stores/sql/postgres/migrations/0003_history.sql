-- What settled messages leave behind, if their queue keeps a history: one partition for each UTC day,
-- so that a day that was archived goes as a whole. kind_id is no foreign key, as in duequeue_message.
CREATE TABLE duequeue_history (
    id bigint GENERATED ALWAYS AS IDENTITY,
    asked_at bigint NOT NULL,
    delivered_at bigint,
    settled_at bigint NOT NULL,
    kind_id integer NOT NULL,
    attempts integer NOT NULL,
    outcome text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    PRIMARY KEY (id, settled_at)
) PARTITION BY RANGE (settled_at);

CREATE INDEX duequeue_history_time ON duequeue_history (kind_id, settled_at, id);

-- What an offer has overwritten. It notes that here only to have it returned: ON CONFLICT can
-- return nothing but the row as it is now.
ALTER TABLE duequeue_message
    ADD COLUMN replaced_asked_at bigint,
    ADD COLUMN replaced_attempts integer;

-- A day is named by the millisecond at which it begins.
CREATE FUNCTION duequeue_history_partition(day bigint) RETURNS text
LANGUAGE sql STABLE
AS $$
    SELECT 'duequeue_history_' || to_char(DATE '1970-01-01' + CAST(day / 86400000 AS integer), 'YYYYMMDD')
$$;

-- By functions that see the catalogue as it is: a query sees it as it was when its transaction began.
CREATE FUNCTION duequeue_has_history_day(day bigint) RETURNS boolean
LANGUAGE sql VOLATILE
AS $$
    SELECT coalesce(
        pg_partition_root(to_regclass(duequeue_history_partition(day))) = CAST('duequeue_history' AS regclass),
        FALSE
    )
$$;

-- A table is made apart and then attached, which keeps nobody from settling meanwhile. Only who finds
-- none takes the lock, since a caller's transaction may hold it for long. The rights are those of the
-- owner: whoever settles messages need not be allowed to create tables.
CREATE FUNCTION duequeue_add_history_day(day bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
    name text := duequeue_history_partition(day);
BEGIN
    IF duequeue_has_history_day(day) THEN
        RETURN;
    END IF;
    LOCK TABLE ONLY duequeue_history IN SHARE UPDATE EXCLUSIVE MODE;
    IF duequeue_has_history_day(day) THEN
        RETURN;
    END IF;
    EXECUTE format('CREATE TABLE %I (LIKE duequeue_history INCLUDING ALL EXCLUDING IDENTITY)', name);
    EXECUTE format(
        'ALTER TABLE duequeue_history ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)',
        name, day, day + 86400000
    );
END
$$;

REVOKE EXECUTE ON FUNCTION duequeue_add_history_day FROM PUBLIC;

-- Keeps late rows out of a day, and everybody else who would remove it. Here and below, a lock that
-- is not had at once is given up: whoever settles messages would have to wait behind us.
CREATE FUNCTION duequeue_lock_history_day(day bigint) RETURNS void
LANGUAGE plpgsql SET lock_timeout = '250ms'
AS $$
BEGIN
    IF duequeue_has_history_day(day) THEN
        EXECUTE format('LOCK TABLE %I IN SHARE ROW EXCLUSIVE MODE', duequeue_history_partition(day));
    END IF;
END
$$;

-- Along with it go the days before it that were made ready, and then nothing was settled.
CREATE FUNCTION duequeue_remove_history_day(day bigint) RETURNS void
LANGUAGE plpgsql SET lock_timeout = '250ms'
AS $$
DECLARE
    name text;
    has_rows boolean;
BEGIN
    FOR name IN
        SELECT relname FROM pg_inherits INNER JOIN pg_class ON pg_class.oid = inhrelid
        WHERE inhparent = CAST('duequeue_history' AS regclass) AND relname <= duequeue_history_partition(day)
    LOOP
        EXECUTE format('LOCK TABLE %I IN SHARE ROW EXCLUSIVE MODE', name);
        EXECUTE format('SELECT EXISTS (SELECT FROM %I)', name) INTO has_rows;
        IF name = duequeue_history_partition(day) OR NOT has_rows THEN
            EXECUTE format('DROP TABLE %I', name);
        END IF;
    END LOOP;
END
$$;
