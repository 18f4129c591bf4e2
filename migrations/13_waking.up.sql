-- Inserts notify only when a collector sleeps: a NOTIFY takes a lock of the whole cluster at commit, and lets
-- producers commit one after the other. A collector that is awake holds the advisory lock (1835100526, oid of
-- tokens) and looks by itself.
--
-- Replaces the body of a function; locks nothing.

-- Tries the lock and lets go of it at once: who gets it has found nobody awake, and notifies.
CREATE OR REPLACE FUNCTION trg_after_token_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF pg_try_advisory_lock_shared(1835100526, TG_RELID::integer) THEN
        PERFORM pg_advisory_unlock_shared(1835100526, TG_RELID::integer);
        NOTIFY token_insert;
    END IF;
    RETURN NULL;
END
$$;

-- From now on, until mailroom_fall_asleep() or the end of the session, inserts do not notify. False when another
-- collector is awake already, or an insert was just trying.
CREATE FUNCTION mailroom_stay_awake() RETURNS boolean LANGUAGE sql VOLATILE AS $$
    SELECT pg_try_advisory_lock(1835100526, 'tokens'::regclass::oid::integer)
$$;

-- The transactions that may have inserted tokens and are not over, of p_among unless it is null: those that hold
-- the lock of an insert. Prepared ones have another name than they had, so they always count. A transaction gives
-- up its locks only after it has become visible, so what is missing here is seen by the next statement.
CREATE FUNCTION mailroom_open_inserts(p_among text[]) RETURNS text[] LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(array_agg(DISTINCT l.virtualtransaction), '{}')
    FROM pg_locks l
    WHERE l.locktype = 'relation' AND l.relation = 'tokens'::regclass AND l.mode = 'RowExclusiveLock' AND l.granted
      AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
      AND l.pid IS DISTINCT FROM pg_backend_pid()
      AND (p_among IS NULL OR l.virtualtransaction = ANY (p_among) OR l.pid IS NULL)
$$;

-- Inserts notify again. Those that have not are over once none of what is returned is in mailroom_open_inserts()
-- any more, and a look after that sees their tokens.
CREATE FUNCTION mailroom_fall_asleep() RETURNS text[] LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_unlock(1835100526, l.objid::integer)
    FROM pg_locks l
    WHERE l.locktype = 'advisory' AND l.classid = 1835100526 AND l.objid = 'tokens'::regclass::oid AND l.objsubid = 2
      AND l.pid = pg_backend_pid() AND l.mode = 'ExclusiveLock'
      AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database());
    RETURN mailroom_open_inserts(NULL);
END
$$;

DO $$
DECLARE
    v_function text;
BEGIN
    FOREACH v_function IN ARRAY ARRAY['trg_after_token_inserted()', 'mailroom_stay_awake()',
                                      'mailroom_open_inserts(text[])', 'mailroom_fall_asleep()']
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', v_function, current_schema());
    END LOOP;
END
$$;
