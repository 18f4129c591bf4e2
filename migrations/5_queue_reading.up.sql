-- Makes a session a collector, and reads what a claim needs before it writes: the state of the queue, abandoned leases,
-- due tokens, changed gaps. Also reads the tokens of a claimed batch, and whether there is anything to claim.
--
-- New functions and a type; locks nothing.

-- The first key of an advisory lock: a class of locks ('queue', 'collector', 'budget', 'serving') of this schema. Schemas of one
-- database share nothing. It has no SET clause, and a body parsed here, like the function below.
CREATE FUNCTION mailroom_lock_class(p_class text) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN hashtext('mailroom ' || p_class) # 'tokens'::regclass::oid::integer;

-- Returns 'due' if a token may be emitted, otherwise why it is skipped: 'consumed', 'expired' or 'wrong status' (of its
-- account). It has no SET clause, so that queries inline it, and a body parsed here, so that no search_path matters.
CREATE FUNCTION mailroom_token_state(p_action token_action, p_consumed_at bigint, p_expires_at bigint,
                                     p_status account_status, p_now bigint)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN p_consumed_at IS NOT NULL THEN 'consumed'
    WHEN p_expires_at <= p_now THEN 'expired'
    WHEN p_action = 'activation'::token_action AND p_status = 'provisioned'::account_status THEN 'due'
    WHEN p_action = 'password_recovery'::token_action AND p_status = 'active'::account_status THEN 'due'
    ELSE 'wrong status'
END;

-- True if a queue that takes p_actions (null: all) takes the tokens of p_action. Inlined, like the function above.
CREATE FUNCTION mailroom_takes(p_actions token_action[], p_action token_action) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN p_actions IS NULL OR p_action = ANY (p_actions);

-- Returns the tokens of a batch from the columns ids and ids_mask. A range of ids with a mask stands for as many ranges as it
-- has tokens, and takes a fiftieth of the time to write. Inlined where there is no mask.
CREATE FUNCTION mailroom_masked_ids(p_ids int8multirange, p_mask bit varying) RETURNS int8multirange
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (SELECT coalesce(range_agg(int8range(lower(p_ids) + i, lower(p_ids) + i + 1)), '{}'::int8multirange)
        FROM generate_series(0, length(p_mask) - 1) i WHERE get_bit(p_mask, i) = 1);

CREATE FUNCTION mailroom_batch_ids(p_ids int8multirange, p_mask bit varying) RETURNS int8multirange
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN p_mask IS NULL THEN p_ids ELSE mailroom_masked_ids(p_ids, p_mask) END;

-- Returns the actions that a queue takes; null for all.
CREATE FUNCTION mailroom_queue_actions(p_queue text) RETURNS token_action[] LANGUAGE sql STABLE
RETURN (SELECT q.actions FROM mailroom_queues q WHERE q.name = p_queue);

-- Returns the newest row of a queue, or the start that jobs names. Raises MR001 for a queue that is unknown or was dropped.
CREATE FUNCTION mailroom_queue_state(p_queue text, OUT cursor bigint, OUT open_from bigint, OUT gap_ids bigint[])
LANGUAGE plpgsql AS $$
BEGIN
    SELECT b.cursor, b.open_from, b.gap_ids INTO cursor, open_from, gap_ids
    FROM mailroom_batches b WHERE b.job_type = p_queue ORDER BY b.id DESC LIMIT 1;
    IF NOT FOUND THEN
        SELECT coalesce(j.last_seq, 0), 1, '{}' INTO cursor, open_from, gap_ids FROM jobs j WHERE j.job_type = p_queue;
    END IF;
    IF NOT FOUND OR EXISTS (SELECT FROM mailroom_queues q WHERE q.name = p_queue AND q.dropped_at IS NOT NULL) THEN
        RAISE EXCEPTION 'unknown queue "%"', p_queue USING ERRCODE = 'MR001';
    END IF;
END
$$;

-- Declares this session a collector of a queue: its leases last as long as the session. A collector of several queues calls
-- it for each. Returns the backend's pid.
CREATE FUNCTION mailroom_attach(p_queue text) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM jobs WHERE job_type = p_queue) THEN
        RAISE EXCEPTION 'unknown queue "%"', p_queue USING ERRCODE = 'MR001';
    END IF;
    IF NOT pg_try_advisory_lock(mailroom_lock_class('collector'), pg_backend_pid()) THEN
        RAISE EXCEPTION 'pid % holds the lock of this session, pid %',
            (SELECT string_agg(DISTINCT l.pid::text, ', ') FROM pg_locks l
             WHERE l.locktype = 'advisory' AND l.classid = mailroom_lock_class('collector')::oid
               AND l.objid = pg_backend_pid()::oid AND l.objsubid = 2
               AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())), pg_backend_pid()
            USING ERRCODE = 'MR006', HINT = 'reconnect to get another pid; mailroom status shows the holder';
    END IF;
    -- Shows which queues this session serves. Does not wait: who holds the lock only hides that.
    PERFORM pg_try_advisory_lock_shared(mailroom_lock_class('serving'), hashtext(p_queue));
    RETURN pg_backend_pid();
END
$$;

-- True while backend p_pid is a collector: it holds the lock of its own pid, and its user may claim, directly or as a
-- member of another role. Every user that may connect can take any advisory lock, so the lock alone proves nothing.
CREATE FUNCTION mailroom_is_collector(p_pid integer) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM pg_locks l JOIN pg_stat_get_activity(p_pid) a ON a.pid = l.pid
        WHERE l.locktype = 'advisory' AND l.classid = mailroom_lock_class('collector')::oid AND l.objid = p_pid::oid AND l.objsubid = 2 AND l.pid = p_pid
          AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
          AND l.mode = 'ExclusiveLock' AND l.granted
          AND EXISTS (SELECT FROM pg_roles r WHERE has_table_privilege(r.oid, 'mailroom_batches', 'INSERT')
                      AND pg_has_role(a.usesysid, r.oid, 'MEMBER')))
$$;

-- Returns an abandoned batch to lease again: one of this session, whose reply was lost, or one of a session that has
-- ended. Ignores the batch that is being acknowledged, and p_held, which this session is still delivering. exhausted = a
-- batch after too many attempts.
CREATE FUNCTION mailroom_find_abandoned(p_queue text, p_open_from bigint, p_take_over boolean,
    p_ack bigint, p_ack_attempt integer, p_held bigint DEFAULT NULL,
    OUT abandoned bigint, OUT exhausted bigint, OUT oldest_open bigint)
LANGUAGE plpgsql AS $$
DECLARE
    r record;
BEGIN
    FOR r IN
        SELECT b.id, b.collector, b.attempts, b.claimed_at FROM mailroom_batches b
        WHERE b.job_type = p_queue AND b.id >= p_open_from AND b.emitted_at IS NULL AND b.dead_at IS NULL
          AND (b.id, b.attempts) IS DISTINCT FROM (p_ack, p_ack_attempt)
        ORDER BY b.attempts, b.id
    LOOP
        oldest_open := least(oldest_open, r.id);
        CONTINUE WHEN r.id = p_held;
        IF r.collector = pg_backend_pid()
           OR (p_take_over AND (pg_try_advisory_xact_lock_shared(mailroom_lock_class('collector'), r.collector)
               OR (r.claimed_at < clock_timestamp() - interval '10 seconds' AND NOT mailroom_is_collector(r.collector)))) THEN
            IF r.attempts < 20 THEN
                abandoned := r.id;
                EXIT;
            END IF;
            exhausted := r.id;
        END IF;
    END LOOP;
END
$$;

-- Reads tokens after p_after, up to p_top, until it has found p_limit tokens of p_actions that are neither consumed nor
-- expired, or has read 10,000; ids = those found, seen = all that were read, others = how many of them have other actions.
-- It does not read accounts: the fetch reads them anyway and skips tokens of the wrong status. It runs several statements: the proof only requires that each takes
-- its snapshot before the caller has a transaction id. Most steps are one gap-free range of one kind, which its two
-- ends describe. Only other steps are read id by id, which takes several times as long. A step with too many due
-- tokens is repeated with a shorter limit.
CREATE FUNCTION mailroom_window(p_after bigint, p_top bigint, p_limit integer, p_actions token_action[],
    OUT ids int8multirange, OUT due integer, OUT seen int8multirange, OUT rows_read integer, OUT last bigint,
    OUT expired integer, OUT consumed integer, OUT others integer, OUT capped boolean)
LANGUAGE plpgsql AS $$
DECLARE
    v_now bigint := floor(extract(epoch FROM clock_timestamp()));
    v_step integer := CASE WHEN p_actions IS NULL THEN p_limit ELSE least(p_limit * 4, 10000) END;
    r record;
BEGIN
    ids := '{}'; seen := '{}'; last := p_after;
    due := 0; rows_read := 0; expired := 0; consumed := 0; others := 0; capped := false;
    WHILE due < p_limit AND NOT capped LOOP
        SELECT count(*) AS found, count(*) FILTER (WHERE t.is_taken) AS taken,
               count(t.consumed_at) FILTER (WHERE t.is_taken) AS consumed, max(t.id) AS last,
               count(*) FILTER (WHERE t.is_due) AS due,
               int8multirange(int8range(min(t.id), max(t.id), '[]')) AS seen, '{}'::int8multirange AS passed
        INTO r
        FROM (SELECT *, mailroom_takes(p_actions, action) AS is_taken,
                     tokens.consumed_at IS NULL AND expires_at > v_now AND mailroom_takes(p_actions, action) AS is_due
              FROM tokens WHERE id > last AND id <= p_top ORDER BY id LIMIT v_step) t;
        EXIT WHEN r.found = 0;
        IF r.due = 0 THEN
            r.passed := r.seen;
        END IF;
        IF due + r.due <= p_limit AND (r.due NOT IN (0, r.found) OR r.last - lower(r.seen) >= r.found) THEN
            SELECT count(*) AS found, count(*) FILTER (WHERE t.is_taken) AS taken,
                   count(t.consumed_at) FILTER (WHERE t.is_taken) AS consumed, max(t.id) AS last,
                   count(*) FILTER (WHERE t.is_due) AS due,
                   range_agg(int8range(t.id, t.id + 1)) AS seen,
                   range_agg(int8range(t.id, t.id + 1)) FILTER (WHERE NOT t.is_due) AS passed
            INTO r
            FROM (SELECT *, mailroom_takes(p_actions, action) AS is_taken,
                     tokens.consumed_at IS NULL AND expires_at > v_now AND mailroom_takes(p_actions, action) AS is_due
                  FROM tokens WHERE id > last AND id <= p_top ORDER BY id LIMIT v_step) t;
        END IF;
        IF due + r.due > p_limit THEN
            v_step := p_limit - due;
            CONTINUE;
        END IF;
        due := due + r.due; consumed := consumed + r.consumed;
        expired := expired + r.taken - r.due - r.consumed; others := others + r.found - r.taken;
        rows_read := rows_read + r.found;
        seen := seen + r.seen;
        ids := ids + (r.seen - coalesce(r.passed, '{}'));
        last := r.last;
        EXIT WHEN r.found < v_step;
        capped := rows_read >= 10000;
        -- Enough rows for what is still wanted, at this step's share of due tokens, but at most four times this step.
        v_step := least(v_step * 4, (p_limit - due) * (r.found / greatest(r.due, 1)), 10000 - rows_read);
    END LOOP;
END
$$;

-- The result of checking one gap: the ids that are visible now, those of them that the queue takes, and the transactions
-- that may still show more.
CREATE TYPE mailroom_gap_check AS (
    id        bigint,
    found     int8multirange,
    taken     int8multirange,
    pending   xid8[],
    may_hold_more boolean
);

-- Returns the visible ids of one gap, of which the queue takes p_budget at most, and the transactions that still run. One
-- statement reads both, so that they belong to one snapshot. A horizon that this cluster has not reached came from another
-- cluster by dump and restore, so none of its transactions runs here. PL/pgSQL caches the plan. At most 10,000 tokens of
-- other actions are read at a time.
CREATE FUNCTION mailroom_check_gap(p_gap bigint, p_budget integer, p_actions token_action[])
RETURNS mailroom_gap_check LANGUAGE plpgsql AS $$
DECLARE
    v_check mailroom_gap_check;
    v_rows integer := CASE WHEN p_actions IS NULL THEN p_budget ELSE 10000 END;
BEGIN
    SELECT h.id,
           coalesce(range_agg(int8range(v.id, v.id, '[]')) FILTER (WHERE v.id IS NOT NULL), '{}'),
           coalesce(range_agg(int8range(v.id, v.id, '[]')) FILTER (WHERE v.is_taken), '{}'),
           ARRAY(SELECT x FROM pg_snapshot_xip(pg_current_snapshot()) x
                 WHERE x < h.horizon AND h.horizon < pg_snapshot_xmax(pg_current_snapshot())
                   AND (h.pending IS NULL OR x = ANY (h.pending))),
           count(v.id) >= v_rows OR count(*) FILTER (WHERE v.is_taken) >= p_budget
    INTO v_check
    FROM mailroom_gaps h
    LEFT JOIN LATERAL (
        SELECT w.id, w.is_taken FROM (
            SELECT r.id, r.is_taken, count(*) FILTER (WHERE r.is_taken) OVER (ORDER BY r.id) AS taken FROM (
                SELECT t.id, mailroom_takes(p_actions, t.action) AS is_taken FROM unnest(h.ids) u(g), LATERAL (
                    SELECT t.id, t.action FROM tokens t WHERE t.id >= lower(u.g) AND t.id < upper(u.g)
                    ORDER BY t.id LIMIT v_rows) t
                LIMIT v_rows) r) w
        WHERE w.taken < p_budget OR (w.taken = p_budget AND w.is_taken)) v ON true
    WHERE h.id = p_gap
    GROUP BY h.id;
    RETURN v_check;
END
$$;

-- Checks those of p_gaps that can have changed: never checked before, or one of their transactions has ended.
-- found_total counts the ids that became visible and that the queue takes, p_budget at most.
CREATE FUNCTION mailroom_check_gaps(p_gaps bigint[], p_budget integer, p_actions token_action[],
    OUT checks mailroom_gap_check[], OUT found_total integer, OUT out_of_budget boolean)
LANGUAGE plpgsql AS $$
DECLARE
    v_gap bigint;
    v_check mailroom_gap_check;
    v_found integer;
BEGIN
    checks := '{}'; found_total := 0; out_of_budget := false;
    FOR v_gap IN
        SELECT h.id FROM mailroom_gaps h
        WHERE h.id = ANY (p_gaps) AND (h.pending IS NULL OR EXISTS (
            SELECT FROM unnest(h.pending) x
            WHERE pg_visible_in_snapshot(x, pg_current_snapshot()) OR x >= pg_snapshot_xmax(pg_current_snapshot())))
        ORDER BY h.id
    LOOP
        out_of_budget := found_total >= p_budget;
        EXIT WHEN out_of_budget;
        v_check := mailroom_check_gap(v_gap, p_budget - found_total, p_actions);
        SELECT coalesce(sum(upper(g) - lower(g)), 0) INTO v_found FROM unnest(v_check.taken) g;
        found_total := found_total + v_found;
        checks := checks || v_check;
        -- A gap that holds more tokens of other actions is read on by the next claim.
        out_of_budget := v_check.may_hold_more;
        EXIT WHEN out_of_budget;
    END LOOP;
    out_of_budget := out_of_budget OR found_total >= p_budget;
END
$$;

-- Returns the tokens of a batch, ordered by id; no rows if the batch has been leased again since. It has no SET clause, so that
-- queries inline it. Its body is not parsed here, because that would keep the column types from changing. Each gap-free range
-- becomes an index condition on tokens. The limit keeps the planner from reading all tokens, whatever the statistics say.
-- OFFSET 0 makes it compute the first id once, which takes longer than all else that the mask costs.
CREATE FUNCTION mailroom_batch_rows(p_batch bigint, p_attempt integer)
RETURNS TABLE (id bigint, account bigint, action token_action, secret bytea, code text, expires_at bigint, consumed_at bigint,
               created_at bigint)
LANGUAGE sql STABLE AS $$
    SELECT t.id, t.account, t.action, t.secret, t.code, t.expires_at, t.consumed_at, t.created_at
    FROM (SELECT ids, ids_mask, lower(ids) AS first FROM mailroom_batches
          WHERE mailroom_batches.id = p_batch AND mailroom_batches.attempts = p_attempt OFFSET 0) b, unnest(b.ids) u(g), LATERAL (
        SELECT * FROM tokens WHERE tokens.id >= lower(u.g) AND tokens.id < upper(u.g)
        ORDER BY tokens.id LIMIT 2000000000) t
    WHERE CASE WHEN b.ids_mask IS NULL THEN true ELSE get_bit(b.ids_mask, (t.id - b.first)::integer) = 1 END
$$;

-- The same with their accounts, and whether they may still be emitted.
CREATE FUNCTION mailroom_batch_tokens(p_batch bigint, p_attempt integer)
RETURNS TABLE (id bigint, action token_action, secret bytea, code text, expires_at bigint, email text, login text, state text,
               created_at bigint, account bigint)
LANGUAGE sql STABLE AS $$
    SELECT t.id, t.action, t.secret, t.code, t.expires_at, a.email, a.login,
           mailroom_token_state(t.action, t.consumed_at, t.expires_at, a.status,
                                (SELECT floor(extract(epoch FROM clock_timestamp()))::bigint)),
           t.created_at, t.account
    FROM mailroom_batch_rows(p_batch, p_attempt) t JOIN accounts a ON a.id = t.account
$$;

-- The same, for use in the statement that claims the batch. The snapshot of that statement is older than the claim's
-- reads and writes; a volatile function takes its own. Returns no rows if p_batch is null.
CREATE FUNCTION mailroom_fetch(p_batch bigint, p_attempt integer)
RETURNS TABLE (id bigint, action token_action, secret bytea, code text, expires_at bigint, email text, login text, state text,
               created_at bigint, account bigint)
LANGUAGE plpgsql STRICT AS $$
BEGIN
    RETURN QUERY SELECT * FROM mailroom_batch_tokens(p_batch, p_attempt);
END
$$;

-- The same, with what a sink with outcomes needs to know about each token: its earlier attempts, and what p_newer and
-- p_period ask for: whether its account has a newer recovery token that may still be emitted (null if not), and how many mails
-- of the queue the account was sent in the last p_period (0 if that is null). resent_at: since when it is a mail of its own, in
-- seconds since 1970, if an operator had it emitted again after its creation; null if not. mail_key: 64 bits for the mail's id.
-- They differ from those of any other token, also of the same id, by its random secret; from those of its mail before it was
-- emitted again; and from those of the same token in a copy of the database, by the oids: a copy is another sender, and a mailbox
-- that drops duplicates must not drop the mail of one for that of the other. Retries, a failover and pg_upgrade keep them.
-- Usually no token of the batch has a record, which is found out once. LIMIT and OFFSET 0 make the planner use the indexes on the account and on queue and token, whatever the
-- statistics say: the plan may be made while the tables are empty.
CREATE FUNCTION mailroom_batch_mails(p_batch bigint, p_attempt integer, p_newer boolean, p_period interval)
RETURNS TABLE (id bigint, action token_action, secret bytea, code text, expires_at bigint, email text, login text, state text,
               created_at bigint, account bigint, attempts integer, unknowns integer, newer bigint, mailed bigint,
               resent_at bigint, mail_key text)
LANGUAGE sql STABLE AS $$
    WITH again AS MATERIALIZED (
        SELECT s.id, floor(extract(epoch FROM s.claimed_at))::bigint AS at, s.resent + '{}' AS ids
        FROM mailroom_batches k JOIN mailroom_batches s ON s.job_type = k.job_type AND s.id < k.id
        WHERE k.id = p_batch AND s.resent IS NOT NULL
          AND extract(epoch FROM s.claimed_at) >= coalesce((
              SELECT t.created_at FROM tokens t WHERE t.id >= lower(k.ids) ORDER BY t.id LIMIT 1), 0) - 3600)
    SELECT b.*, coalesce(d.attempts, 0), coalesce(d.unknowns, 0),
           CASE WHEN p_newer AND b.action = 'password_recovery' THEN (
               SELECT max(n.id) FROM (SELECT * FROM tokens WHERE tokens.account = b.account OFFSET 0) n
               WHERE n.id > b.id AND n.action = b.action AND n.consumed_at IS NULL
                 AND n.expires_at > (SELECT floor(extract(epoch FROM clock_timestamp()))::bigint)) END,
           CASE WHEN p_period IS NULL THEN 0 ELSE (
               SELECT count(*) FROM (SELECT * FROM tokens WHERE tokens.account = b.account OFFSET 0) o, LATERAL (
                   SELECT * FROM mailroom_deliveries WHERE mailroom_deliveries.queue = q.job_type AND mailroom_deliveries.token = o.id
                   LIMIT 1) m
               WHERE o.id <> b.id
                 AND coalesce(m.accepted_at, CASE WHEN m.unknowns > 0 THEN m.last_at END)
                     > (SELECT clock_timestamp()) - p_period) END,
           r.at,
           encode(substring(sha256(b.secret || convert_to(concat_ws(':',
               (SELECT oid FROM pg_database WHERE datname = current_database()), 'tokens'::regclass::oid, r.id),
               'UTF8')) FROM 1 FOR 8), 'hex')
    FROM mailroom_batch_tokens(p_batch, p_attempt) b
    JOIN (SELECT job_type FROM mailroom_batches WHERE mailroom_batches.id = p_batch) q ON true
    LEFT JOIN LATERAL (
        SELECT * FROM mailroom_deliveries WHERE mailroom_deliveries.queue = q.job_type AND mailroom_deliveries.token = b.id
          AND (SELECT EXISTS (SELECT FROM mailroom_batches k, LATERAL (
                   SELECT FROM mailroom_deliveries r
                   WHERE r.queue = k.job_type AND r.token >= lower(k.ids) AND r.token < upper(k.ids) LIMIT 1) x
               WHERE k.id = p_batch))
        LIMIT 1) d ON true
    LEFT JOIN LATERAL (
        SELECT a.id, a.at FROM again a WHERE a.ids @> b.id AND a.at >= b.created_at ORDER BY a.id DESC LIMIT 1) r ON true
$$;

-- Returns the cursor of a queue if a claim would find nothing to do: no token above the cursor (or only tokens of other
-- actions, fewer than 1,000, which a claim leaves there too), no gap, no batch in flight, no deferred token to try again,
-- last_seq up to date, the sequence not behind. Returns no row if there may be work; a claim finds out. The clock is in a
-- subquery, because a volatile function cannot be an index condition.
CREATE FUNCTION mailroom_idle_cursor(p_queue text) RETURNS SETOF bigint LANGUAGE sql STABLE AS $$
    SELECT s.cursor
    FROM (SELECT coalesce(n.cursor, j.last_seq, 0) AS cursor, coalesce(j.last_seq, 0) AS published,
                 coalesce(n.open_from, 1) AS open_from, coalesce(n.gap_ids, '{}') AS gap_ids, q.actions
          FROM jobs j LEFT JOIN mailroom_queues q ON q.name = j.job_type LEFT JOIN LATERAL (
              SELECT b.cursor, b.open_from, b.gap_ids FROM mailroom_batches b
              WHERE b.job_type = p_queue ORDER BY b.id DESC LIMIT 1) n ON true
          WHERE j.job_type = p_queue) s
    JOIN tokens_id_seq q ON s.cursor <= CASE WHEN q.is_called THEN q.last_value ELSE q.last_value - 1 END
    WHERE s.published = s.cursor AND s.gap_ids = '{}'
      AND NOT EXISTS (
          SELECT FROM (SELECT t.action, row_number() OVER () AS n
                       FROM (SELECT action FROM tokens WHERE id > s.cursor ORDER BY id LIMIT 1000) t) t
          WHERE mailroom_takes(s.actions, t.action) OR t.n = 1000)
      AND NOT EXISTS (SELECT FROM mailroom_batches b WHERE b.job_type = p_queue AND b.id >= s.open_from
                      AND b.emitted_at IS NULL AND b.dead_at IS NULL)
      AND NOT EXISTS (SELECT FROM mailroom_deliveries d
                      WHERE d.queue = p_queue AND d.not_before <= (SELECT clock_timestamp()))
$$;

DO $$
DECLARE
    v_function text;
BEGIN
    FOREACH v_function IN ARRAY ARRAY[
        'mailroom_queue_state(text)', 'mailroom_attach(text)', 'mailroom_is_collector(integer)',
        'mailroom_find_abandoned(text, bigint, boolean, bigint, integer, bigint)',
        'mailroom_window(bigint, bigint, integer, token_action[])',
        'mailroom_check_gap(bigint, integer, token_action[])',
        'mailroom_check_gaps(bigint[], integer, token_action[])', 'mailroom_fetch(bigint, integer)'
    ]
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', v_function, current_schema());
    END LOOP;
END
$$;
