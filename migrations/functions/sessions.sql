-- Collectors: the locks that a session holds while it serves a queue, and which clients the schema allows.

-- The first key of an advisory lock: a class of locks ('queue', 'collector', 'budget', 'serving', 'cancel') of this schema.
-- Schemas of one database share nothing. It has no SET clause, and a body parsed here, like the function below.
CREATE OR REPLACE FUNCTION mailroom_lock_class(p_class text) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hashtext('mailroom ' || p_class) # 'tokens'::regclass::oid::integer;

-- Declares this session a collector of a queue: its leases last as long as the session. A collector of several queues
-- calls it for each. Returns the backend's pid. Raises MR009 in a copy of the database.
CREATE OR REPLACE FUNCTION mailroom_attach(p_queue text) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM jobs WHERE job_type = p_queue) THEN
        RAISE EXCEPTION 'unknown queue "%"', p_queue USING ERRCODE = 'MR001';
    END IF;
    PERFORM mailroom_require_home();
    IF NOT pg_try_advisory_lock(mailroom_lock_class('collector'), pg_backend_pid()) THEN
        RAISE EXCEPTION 'pid % holds the lock of this session, pid %',
            (SELECT string_agg(DISTINCT l.pid::text, ', ') FROM pg_locks l
             WHERE l.locktype = 'advisory' AND l.classid = mailroom_lock_class('collector')::oid
               AND l.objid = pg_backend_pid()::oid AND l.objsubid = 2
               AND l.database = (SELECT d.oid FROM mailroom_this_database() d)), pg_backend_pid()
            USING ERRCODE = 'MR006', HINT = 'reconnect to get another pid; mailroom status shows the holder';
    END IF;
    -- Shows which queues this session serves. Does not wait: who holds the lock only hides that.
    PERFORM pg_try_advisory_lock_shared(mailroom_lock_class('serving'), hashtext(p_queue));
    RETURN pg_backend_pid();
END
$$;

-- True while backend p_pid is a collector: it holds the lock of its own pid, and its user may claim, directly or as a
-- member of another role. Every user that may connect can take any advisory lock, so the lock alone proves nothing.
CREATE OR REPLACE FUNCTION mailroom_is_collector(p_pid integer) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM pg_locks l JOIN pg_stat_get_activity(p_pid) a ON a.pid = l.pid
        WHERE l.locktype = 'advisory' AND l.classid = mailroom_lock_class('collector')::oid AND l.objid = p_pid::oid AND l.objsubid = 2 AND l.pid = p_pid
          AND l.database = (SELECT d.oid FROM mailroom_this_database() d)
          AND l.mode = 'ExclusiveLock' AND l.granted
          AND EXISTS (SELECT FROM pg_roles r WHERE has_table_privilege(r.oid, 'mailroom_batches', 'INSERT')
                      AND pg_has_role(a.usesysid, r.oid, 'MEMBER')))
$$;

-- Returns the minimum client: the newest version of the schema that a mailroom must know to work on it. A change that
-- breaks older clients comes with a version, and this returns it; they can read it without knowing that version. It is
-- a function because every role may call it, and because any migration tool makes it.
CREATE OR REPLACE FUNCTION mailroom_minimum_client() RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 8;
