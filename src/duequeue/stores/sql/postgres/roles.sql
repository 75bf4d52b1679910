-- This script creates roles with no more rights than DueQueue needs. The tables must exist. Run it as
-- the owner of the tables, with their schema first in the search path, and again for each new version of
-- DueQueue, after its migration. Unless the roles exist already, the owner must be allowed to create roles. Then grant them
-- to your logins:
--
--   GRANT duequeue_producer TO shop;
--   GRANT duequeue_consumer TO worker;
BEGIN;

DO $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['duequeue_producer', 'duequeue_consumer', 'duequeue_admin'] LOOP
        IF to_regrole(role) IS NULL THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
        END IF;
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), role);
    END LOOP;
END
$$;

REVOKE ALL ON
    duequeue_migration, duequeue_kind, duequeue_message, duequeue_buried, duequeue_response, duequeue_history,
    duequeue_cron, duequeue_tick, duequeue_forgotten_tick,
    duequeue_stage, duequeue_stream_commit, duequeue_stream_batch
FROM duequeue_producer, duequeue_consumer, duequeue_admin;

-- An offer compares its payload with the stored one, and a role that may compare a column may read it.
-- So a producer has no rights on the table at all. It calls these functions, which act for the owner.
{functions}

-- The functions have the rights of the owner of the tables and no more, even if a superuser runs this
-- script. No caller can put a temporary table of its own in the place of the owner's.
DO $$
DECLARE
    function regprocedure;
    owner regrole := (SELECT relowner FROM pg_class WHERE oid = CAST('duequeue_message' AS regclass));
BEGIN
    FOR function IN
        SELECT oid FROM pg_proc
        WHERE prosecdef AND proname LIKE 'duequeue\_%' AND pronamespace = CAST(current_schema() AS regnamespace)
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', function, current_schema());
        EXECUTE format('ALTER FUNCTION %s OWNER TO %s', function, owner);
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', function);
    END LOOP;
END
$$;

-- Every role looks up which tables and queues there are. Only an administrator adds a queue.
GRANT SELECT ON duequeue_migration, duequeue_kind TO duequeue_producer, duequeue_consumer, duequeue_admin;
GRANT EXECUTE ON FUNCTION duequeue_add_history_day TO duequeue_producer, duequeue_consumer, duequeue_admin;

-- A producer offers, and asks for the responses to its messages by their keys. It reads, changes and
-- deletes nothing itself.
GRANT EXECUTE ON FUNCTION {names} TO duequeue_producer;

-- A consumer reads and deletes messages, and changes their leases, but not their payloads.
GRANT SELECT, DELETE ON duequeue_message TO duequeue_consumer;
GRANT UPDATE (leased_until, lease_token, attempt, due_at) ON duequeue_message TO duequeue_consumer;
GRANT INSERT ON duequeue_buried, duequeue_history TO duequeue_consumer;
GRANT SELECT (kind_id) ON duequeue_buried TO duequeue_consumer; -- for the numbers of stats()

-- A consumer answers messages, and deletes old responses. It can also read what it has answered.
GRANT SELECT, INSERT, UPDATE, DELETE ON duequeue_response TO duequeue_consumer;

-- An administrator can do everything that DueQueue does, except migrate and remove days of the history.
-- Only the owner of the tables can do that.
GRANT INSERT ON duequeue_kind TO duequeue_admin;
GRANT SELECT, INSERT, UPDATE, DELETE ON
    duequeue_message, duequeue_buried, duequeue_response, duequeue_cron, duequeue_tick, duequeue_forgotten_tick,
    duequeue_stage, duequeue_stream_commit, duequeue_stream_batch
TO duequeue_admin;
GRANT SELECT, INSERT, DELETE ON duequeue_history TO duequeue_admin;
GRANT USAGE ON SEQUENCE duequeue_message_id_seq TO duequeue_admin;

COMMIT;
