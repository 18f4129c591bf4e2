-- Inserts notify only while collectors sleep: a NOTIFY takes a lock of the whole cluster at commit, so that
-- producers commit one after the other. A collector that is awake holds the advisory lock (1835100526, oid of
-- tokens), and looks by itself.
--
-- Replaces the body of a function; locks nothing.

-- Tries the lock and lets go of it at once: who gets it has found nobody awake, and notifies. In one expression, so
-- that nothing can interrupt it in between and leave the lock with the session.
CREATE OR REPLACE FUNCTION trg_after_token_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (CASE WHEN pg_try_advisory_lock_shared(1835100526, TG_RELID::integer)
             THEN pg_advisory_unlock_shared(1835100526, TG_RELID::integer) END) THEN
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

-- Inserts notify again. Whoever has not, because of this session, is among mailroom_open_inserts(NULL) from now on
-- until it has ended. False if this session was not awake.
CREATE FUNCTION mailroom_fall_asleep() RETURNS boolean LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(bool_or(pg_advisory_unlock(1835100526, l.objid::integer)), false)
    FROM pg_locks l
    WHERE l.locktype = 'advisory' AND l.classid = 1835100526 AND l.objid = 'tokens'::regclass::oid AND l.objsubid = 2
      AND l.pid = pg_backend_pid() AND l.mode = 'ExclusiveLock'
      AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
$$;

-- The transactions that may have inserted tokens and are not over, of p_among unless it is null: those that hold
-- the lock of an insert, which each took before its trigger looked. A prepared one always counts, since it has lost
-- the session that it was known by. Locks are given up after the transaction has become visible, so whoever is
-- missing here is seen by the next statement.
CREATE FUNCTION mailroom_open_inserts(p_among text[]) RETURNS text[] LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(array_agg(DISTINCT l.virtualtransaction), '{}')
    FROM pg_locks l
    WHERE l.locktype = 'relation' AND l.relation = 'tokens'::regclass AND l.mode = 'RowExclusiveLock' AND l.granted
      AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
      AND l.pid IS DISTINCT FROM pg_backend_pid()
      AND (p_among IS NULL OR l.virtualtransaction = ANY (p_among) OR l.pid IS NULL)
$$;

DO $$
DECLARE
    v_function text;
BEGIN
    FOREACH v_function IN ARRAY ARRAY['trg_after_token_inserted()', 'mailroom_stay_awake()', 'mailroom_fall_asleep()',
                                      'mailroom_open_inserts(text[])']
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', v_function, current_schema());
    END LOOP;
END
$$;
