-- What makes a session a collector, and what its claims look at before they write: where the queue stands, which leases have
-- ended, which tokens are due, which holes have changed; and the tokens of its batch afterwards. Whether there is anything to
-- claim.
--
-- New functions and a type; locks nothing.

-- Why a token is handed on, or is not: due, consumed, expired, or of an account in the wrong state.
-- Without a SET clause and with a body that is parsed here, so that queries inline it and no search_path matters.
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

-- The newest row of a queue, or where jobs says to begin.
CREATE FUNCTION mailroom_queue_state(p_queue text, OUT cursor bigint, OUT open_from bigint, OUT hole_ids bigint[])
LANGUAGE plpgsql AS $$
BEGIN
    SELECT b.cursor, b.open_from, b.hole_ids INTO cursor, open_from, hole_ids
    FROM mailroom_batches b WHERE b.job_type = p_queue ORDER BY b.id DESC LIMIT 1;
    IF NOT FOUND THEN
        SELECT coalesce(j.last_seq, 0), 1, '{}' INTO cursor, open_from, hole_ids FROM jobs j WHERE j.job_type = p_queue;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'unknown queue "%"', p_queue USING ERRCODE = 'MR001';
        END IF;
    END IF;
END
$$;

-- Declares this session a collector: its leases last as long as the session. Returns the backend's pid.
CREATE FUNCTION mailroom_attach(p_queue text) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM jobs WHERE job_type = p_queue) THEN
        RAISE EXCEPTION 'unknown queue "%"', p_queue USING ERRCODE = 'MR001';
    END IF;
    IF NOT pg_try_advisory_lock(1835100525, pg_backend_pid()) THEN
        RAISE EXCEPTION 'pid % holds the lock of this session, pid %',
            (SELECT string_agg(DISTINCT l.pid::text, ', ') FROM pg_locks l
             WHERE l.locktype = 'advisory' AND l.classid = 1835100525 AND l.objid = pg_backend_pid()::oid AND l.objsubid = 2
               AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())), pg_backend_pid()
            USING ERRCODE = 'MR006', HINT = 'another connection has another pid; mailroom status names who holds it';
    END IF;
    RETURN pg_backend_pid();
END
$$;

-- True while p_pid is a collector's: it holds the lock of its own pid, and its user may claim, if as another role that it is a
-- member of. Whoever may connect may take any advisory lock, so the lock alone says nothing.
CREATE FUNCTION mailroom_is_collector(p_pid integer) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM pg_locks l JOIN pg_stat_get_activity(p_pid) a ON a.pid = l.pid
        WHERE l.locktype = 'advisory' AND l.classid = 1835100525 AND l.objid = p_pid::oid AND l.objsubid = 2 AND l.pid = p_pid
          AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
          AND l.mode = 'ExclusiveLock' AND l.granted
          AND EXISTS (SELECT FROM pg_roles r WHERE has_table_privilege(r.oid, 'mailroom_batches', 'INSERT')
                      AND pg_has_role(a.usesysid, r.oid, 'MEMBER')))
$$;

-- A lease to hand out again: of this very session, which then never heard of it, or of one that is gone. The
-- batch that is being acknowledged does not count. exhausted = one that was tried too often.
CREATE FUNCTION mailroom_find_orphan(p_queue text, p_open_from bigint, p_take_over boolean,
    p_ack bigint, p_ack_attempt integer, OUT orphan bigint, OUT exhausted bigint, OUT oldest_open bigint)
LANGUAGE plpgsql AS $$
DECLARE
    r record;
BEGIN
    FOR r IN
        SELECT b.id, b.collector, b.attempts, b.claimed_at FROM mailroom_batches b
        WHERE b.job_type = p_queue AND b.id >= p_open_from AND b.emitted_at IS NULL AND b.set_aside_at IS NULL
          AND (b.id, b.attempts) IS DISTINCT FROM (p_ack, p_ack_attempt)
        ORDER BY b.attempts, b.id
    LOOP
        oldest_open := least(oldest_open, r.id);
        IF r.collector = pg_backend_pid()
           OR (p_take_over AND (pg_try_advisory_xact_lock_shared(1835100525, r.collector)
               OR (r.claimed_at < clock_timestamp() - interval '10 seconds' AND NOT mailroom_is_collector(r.collector)))) THEN
            IF r.attempts < 20 THEN
                orphan := r.id;
                EXIT;
            END IF;
            exhausted := r.id;
        END IF;
    END LOOP;
END
$$;

-- Reads on from p_after, at most to p_top, until p_limit tokens that are neither consumed nor expired are found, the end is
-- reached or 10,000 are read; ids = those found, seen = all. Of the accounts it reads nothing: the fetch has to read them
-- anyway, and leaves out what they forbid. Several statements: each takes its snapshot before the caller has a transaction id,
-- which is all that the proof asks. What is counted first is most often one gap-free stretch of one kind, and known by its
-- ends; only otherwise is each id looked at, which takes several times as long. A step that holds more than are wanted is taken
-- back and made so short that it cannot.
CREATE FUNCTION mailroom_window(p_after bigint, p_top bigint, p_limit integer,
    OUT ids int8multirange, OUT due integer, OUT seen int8multirange, OUT rows_read integer, OUT last bigint,
    OUT expired integer, OUT consumed integer, OUT capped boolean)
LANGUAGE plpgsql AS $$
DECLARE
    v_now bigint := floor(extract(epoch FROM clock_timestamp()));
    v_step integer := p_limit;
    r record;
BEGIN
    ids := '{}'; seen := '{}'; last := p_after;
    due := 0; rows_read := 0; expired := 0; consumed := 0; capped := false;
    WHILE due < p_limit AND NOT capped LOOP
        SELECT count(*) AS found, count(t.consumed_at) AS consumed, max(t.id) AS last,
               count(*) FILTER (WHERE t.is_due) AS due,
               int8multirange(int8range(min(t.id), max(t.id), '[]')) AS seen, '{}'::int8multirange AS passed
        INTO r
        FROM (SELECT *, tokens.consumed_at IS NULL AND expires_at > v_now AS is_due
              FROM tokens WHERE id > last AND id <= p_top ORDER BY id LIMIT v_step) t;
        EXIT WHEN r.found = 0;
        IF r.due = 0 THEN
            r.passed := r.seen;
        END IF;
        IF due + r.due <= p_limit AND (r.due NOT IN (0, r.found) OR r.last - lower(r.seen) >= r.found) THEN
            SELECT count(*) AS found, count(t.consumed_at) AS consumed, max(t.id) AS last,
                   count(*) FILTER (WHERE t.is_due) AS due,
                   range_agg(int8range(t.id, t.id + 1)) AS seen,
                   range_agg(int8range(t.id, t.id + 1)) FILTER (WHERE NOT t.is_due) AS passed
            INTO r
            FROM (SELECT *, tokens.consumed_at IS NULL AND expires_at > v_now AS is_due
                  FROM tokens WHERE id > last AND id <= p_top ORDER BY id LIMIT v_step) t;
        END IF;
        IF due + r.due > p_limit THEN
            v_step := p_limit - due;
            CONTINUE;
        END IF;
        due := due + r.due; consumed := consumed + r.consumed;
        expired := expired + r.found - r.due - r.consumed; rows_read := rows_read + r.found;
        seen := seen + r.seen;
        ids := ids + (r.seen - coalesce(r.passed, '{}'));
        last := r.last;
        EXIT WHEN r.found < v_step;
        capped := rows_read >= 10000;
        -- As many as hold what is still wanted, going by this step, yet not too many more than it.
        v_step := least(v_step * 4, (p_limit - due) * (r.found / greatest(r.due, 1)), 10000 - rows_read);
    END LOOP;
END
$$;

-- What a look at one hole showed: the ids that are visible now, and the transactions that may still show more.
CREATE TYPE mailroom_hole_look AS (
    id        bigint,
    found     int8multirange,
    pending   xid8[],
    may_hold_more boolean
);

-- The visible ids of one hole, p_budget at most, and the transactions that still ran: in one statement, so
-- that both belong to one snapshot. A horizon that this cluster has not reached came from another one, by
-- dump and restore: nothing of it runs here. In PL/pgSQL, which keeps the plan.
CREATE FUNCTION mailroom_look_at_hole(p_hole bigint, p_budget integer) RETURNS mailroom_hole_look LANGUAGE plpgsql AS $$
DECLARE
    v_look mailroom_hole_look;
BEGIN
    SELECT h.id,
           coalesce(range_agg(int8range(v.id, v.id, '[]')) FILTER (WHERE v.id IS NOT NULL), '{}'),
           ARRAY(SELECT x FROM pg_snapshot_xip(pg_current_snapshot()) x
                 WHERE x < h.horizon AND h.horizon < pg_snapshot_xmax(pg_current_snapshot())
                   AND (h.pending IS NULL OR x = ANY (h.pending))),
           count(v.id) >= p_budget
    INTO v_look
    FROM mailroom_holes h
    LEFT JOIN LATERAL (
        SELECT t.id FROM unnest(h.ids) u(g), LATERAL (
            SELECT t.id FROM tokens t WHERE t.id >= lower(u.g) AND t.id < upper(u.g)
            ORDER BY t.id LIMIT p_budget) t
        LIMIT p_budget) v ON true
    WHERE h.id = p_hole
    GROUP BY h.id;
    RETURN v_look;
END
$$;

-- Looks at those of p_holes that can have changed: never looked at, or one of their transactions has ended.
-- found_total counts the ids that came to light, p_budget at most.
CREATE FUNCTION mailroom_look_at_holes(p_holes bigint[], p_budget integer,
    OUT looks mailroom_hole_look[], OUT found_total integer, OUT out_of_budget boolean)
LANGUAGE plpgsql AS $$
DECLARE
    v_hole bigint;
    v_look mailroom_hole_look;
    v_found integer;
BEGIN
    looks := '{}'; found_total := 0; out_of_budget := false;
    FOR v_hole IN
        SELECT h.id FROM mailroom_holes h
        WHERE h.id = ANY (p_holes) AND (h.pending IS NULL OR EXISTS (
            SELECT FROM unnest(h.pending) x
            WHERE pg_visible_in_snapshot(x, pg_current_snapshot()) OR x >= pg_snapshot_xmax(pg_current_snapshot())))
        ORDER BY h.id
    LOOP
        out_of_budget := found_total >= p_budget;
        EXIT WHEN out_of_budget;
        v_look := mailroom_look_at_hole(v_hole, p_budget - found_total);
        SELECT coalesce(sum(upper(g) - lower(g)), 0) INTO v_found FROM unnest(v_look.found) g;
        found_total := found_total + v_found;
        looks := looks || v_look;
    END LOOP;
    out_of_budget := out_of_budget OR found_total >= p_budget;
END
$$;

-- The tokens of a batch with their accounts, by id, and whether they may still be handed on; nothing if the batch has been
-- handed out anew since. Without a SET clause, so that queries inline it, and without a body that is parsed here, which would
-- keep the types of its columns from changing. The range of each gap-free run goes into the index of tokens as a condition,
-- and the limit keeps the planner from turning the whole into a join over all tokens, whatever the statistics say.
CREATE FUNCTION mailroom_batch_tokens(p_batch bigint, p_attempt integer)
RETURNS TABLE (id bigint, action token_action, secret bytea, code text, expires_at bigint, email text, login text, state text)
LANGUAGE sql STABLE AS $$
    SELECT t.id, t.action, t.secret, t.code, t.expires_at, a.email, a.login,
           mailroom_token_state(t.action, t.consumed_at, t.expires_at, a.status,
                                (SELECT floor(extract(epoch FROM clock_timestamp()))::bigint))
    FROM mailroom_batches b, unnest(b.ids) u(g), LATERAL (
        SELECT * FROM tokens WHERE tokens.id >= lower(u.g) AND tokens.id < upper(u.g)
        ORDER BY tokens.id LIMIT 2000000000) t
    JOIN accounts a ON a.id = t.account
    WHERE b.id = p_batch AND b.attempts = p_attempt
$$;

-- The same in the very statement that claims the batch, whose snapshot is older than the claim's reads and writes: a volatile
-- function takes its own. Nothing for no batch.
CREATE FUNCTION mailroom_fetch(p_batch bigint, p_attempt integer)
RETURNS TABLE (id bigint, action token_action, secret bytea, code text, expires_at bigint, email text, login text, state text)
LANGUAGE plpgsql STRICT AS $$
BEGIN
    RETURN QUERY SELECT * FROM mailroom_batch_tokens(p_batch, p_attempt);
END
$$;

-- The cursor of a queue in which a claim would find nothing to do: no token above it, no hole, no batch in flight, last_seq
-- has followed, and the sequence is not behind. No row when there may be something, which a claim finds out.
CREATE FUNCTION mailroom_idle_cursor(p_queue text) RETURNS SETOF bigint LANGUAGE sql STABLE AS $$
    SELECT s.cursor
    FROM (SELECT coalesce(n.cursor, j.last_seq, 0) AS cursor, coalesce(j.last_seq, 0) AS published,
                 coalesce(n.open_from, 1) AS open_from, coalesce(n.hole_ids, '{}') AS hole_ids
          FROM jobs j LEFT JOIN LATERAL (
              SELECT b.cursor, b.open_from, b.hole_ids FROM mailroom_batches b
              WHERE b.job_type = p_queue ORDER BY b.id DESC LIMIT 1) n ON true
          WHERE j.job_type = p_queue) s
    JOIN tokens_id_seq q ON s.cursor <= CASE WHEN q.is_called THEN q.last_value ELSE q.last_value - 1 END
    WHERE s.published = s.cursor AND s.hole_ids = '{}'
      AND NOT EXISTS (SELECT FROM tokens t WHERE t.id > s.cursor)
      AND NOT EXISTS (SELECT FROM mailroom_batches b WHERE b.job_type = p_queue AND b.id >= s.open_from
                      AND b.emitted_at IS NULL AND b.set_aside_at IS NULL)
$$;

DO $$
DECLARE
    v_function regprocedure;
BEGIN
    FOR v_function IN
        SELECT oid FROM pg_proc
        WHERE pronamespace = quote_ident(current_schema())::regnamespace
          AND proname IN ('mailroom_queue_state', 'mailroom_attach', 'mailroom_is_collector', 'mailroom_find_orphan', 'mailroom_window',
                          'mailroom_look_at_hole', 'mailroom_look_at_holes', 'mailroom_fetch')
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', v_function, current_schema());
    END LOOP;
END
$$;
