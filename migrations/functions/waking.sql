-- Inserts notify only while no collector is polling: NOTIFY takes a cluster-wide lock at commit, which serializes the
-- commits of producers. A polling collector holds the advisory lock (1835100526, oid of tokens) and needs no
-- notifications.

-- Notifies of the tokens of a statement unless a collector is polling. Tries the lock and releases it at once: if it was free, no
-- collector is polling, and the insert notifies. One expression, so that no interrupt between the two calls can leave
-- the lock with the session.
CREATE OR REPLACE FUNCTION trg_after_token_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (CASE WHEN pg_try_advisory_lock_shared(1835100526, TG_RELID::integer)
             THEN pg_advisory_unlock_shared(1835100526, TG_RELID::integer) END) THEN
        NOTIFY token_insert;
    END IF;
    RETURN NULL;
END
$$;

-- True if an insert would notify now. Inlined. The same expression as above, which is not called: the function would need a SET clause.
CREATE OR REPLACE FUNCTION mailroom_inserts_notify() RETURNS boolean LANGUAGE sql VOLATILE
RETURN CASE WHEN pg_try_advisory_lock_shared(1835100526, 'tokens'::regclass::oid::integer)
            THEN pg_advisory_unlock_shared(1835100526, 'tokens'::regclass::oid::integer) ELSE false END;

-- Stops inserts from notifying until mailroom_start_listening() or the end of the session. Returns false if another
-- collector is polling already, or an insert is trying the lock at this moment.
CREATE OR REPLACE FUNCTION mailroom_stay_polling() RETURNS boolean LANGUAGE sql VOLATILE AS $$
    SELECT pg_try_advisory_lock(1835100526, 'tokens'::regclass::oid::integer)
$$;

-- Lets inserts notify again. From now on mailroom_open_inserts(NULL) includes every transaction that did not notify
-- because of this session, until that transaction has ended. If there are several queues, it notifies p_channel, so
-- that the collectors of the others drain too. Returns false if this session was not polling.
CREATE OR REPLACE FUNCTION mailroom_start_listening(p_channel text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_was_polling boolean;
BEGIN
    SELECT coalesce(bool_or(pg_advisory_unlock(1835100526, l.objid::integer)), false) INTO v_was_polling
    FROM pg_locks l
    WHERE l.locktype = 'advisory' AND l.classid = 1835100526 AND l.objid = 'tokens'::regclass::oid AND l.objsubid = 2
      AND l.pid = pg_backend_pid() AND l.mode = 'ExclusiveLock'
      AND l.database = (SELECT d.oid FROM mailroom_this_database() d);
    IF v_was_polling AND (SELECT count(*) > 1 FROM jobs) THEN
        PERFORM pg_notify(p_channel, 'drain');
    END IF;
    RETURN v_was_polling;
END
$$;

-- Returns the open transactions that may have inserted tokens, limited to p_among unless it is null. They hold the
-- table lock of an INSERT, which they took before their trigger tried the advisory lock. Prepared transactions are
-- always included, because they have no session to be identified by. A transaction releases its locks after it has
-- become visible, so the next statement sees the rows of every transaction that is missing here.
CREATE OR REPLACE FUNCTION mailroom_open_inserts(p_among text[]) RETURNS text[] LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(array_agg(DISTINCT l.virtualtransaction), '{}')
    FROM pg_locks l
    WHERE l.locktype = 'relation' AND l.relation = 'tokens'::regclass AND l.mode = 'RowExclusiveLock' AND l.granted
      AND l.database = (SELECT d.oid FROM mailroom_this_database() d)
      AND l.pid IS DISTINCT FROM pg_backend_pid()
      AND (p_among IS NULL OR l.virtualtransaction = ANY (p_among) OR l.pid IS NULL)
$$;
