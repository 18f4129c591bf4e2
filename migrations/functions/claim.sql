-- The claim: acknowledge one batch and take the next, in one short transaction. It does not choose the queue, nor how
-- many tokens are wanted (core/consumer), does not read mails (fetch.sql), and does not decide what an answer means for a
-- token (core/delivery/delivery_policy): it records the outcome that it is given.
--
-- A claim holds the advisory lock (mailroom_lock_class('queue'), hashtext(queue)) until it commits, and each
-- collector's session holds (mailroom_lock_class('collector'), its backend's pid) until it ends.
--
-- Custom SQLSTATEs: MR001 unknown queue, MR002 a sequence is behind the cursor or its table, MR003 the session or
-- transaction cannot hold a claim.

-- Returns the cursor of a queue if a claim would find nothing to do: no token above the cursor (or only tokens of other
-- actions, fewer than 1,000, which a claim leaves there too), no gap (the newest batch may name some that have ended), no
-- batch in flight, no deferred token to try again, last_seq up to date, the sequence not behind. Returns no row if there may
-- be work; a claim finds out. newest: the newest batch of the queue; next: when a deferred token may be tried again. The clock is
-- in a subquery, so that it is read once.
CREATE OR REPLACE FUNCTION mailroom_idle_cursor(p_queue text) RETURNS TABLE (cursor bigint, newest bigint, next timestamptz)
LANGUAGE sql STABLE AS $$
    SELECT s.cursor, s.newest, d.next
    FROM (SELECT coalesce(n.cursor, j.last_seq, 0) AS cursor, coalesce(j.last_seq, 0) AS published, n.id AS newest,
                 coalesce(n.open_from, 1) AS open_from, coalesce(n.gap_ids, '{}') AS gap_ids, q.actions
          FROM jobs j LEFT JOIN mailroom_queues q ON q.name = j.job_type LEFT JOIN LATERAL (
              SELECT b.id, b.cursor, b.open_from, b.gap_ids FROM mailroom_batches b
              WHERE b.queue = p_queue ORDER BY b.id DESC LIMIT 1) n ON true
          WHERE j.job_type = p_queue) s
    JOIN mailroom_last_drawn_token() q ON s.cursor <= q.id
    LEFT JOIN LATERAL (
        SELECT e.not_before AS next FROM mailroom_deliveries e
        WHERE e.queue = p_queue AND e.not_before IS NOT NULL ORDER BY e.not_before LIMIT 1) d ON true
    WHERE s.published = s.cursor
      AND NOT EXISTS (SELECT FROM mailroom_gaps h WHERE h.id = ANY (s.gap_ids))
      AND NOT EXISTS (
          SELECT FROM (SELECT t.action, row_number() OVER () AS n
                       FROM (SELECT action FROM tokens WHERE id > s.cursor ORDER BY id LIMIT 1000) t) t
          WHERE mailroom_takes(s.actions, t.action) OR t.n = 1000)
      AND NOT EXISTS (SELECT FROM mailroom_batches b WHERE b.queue = p_queue AND b.id >= s.open_from
                      AND b.emitted_at IS NULL AND b.dead_at IS NULL)
      AND (d.next <= (SELECT clock_timestamp())) IS NOT TRUE
$$;

-- Returns an abandoned batch to lease again: one of this session, whose reply was lost, or one of a session that has
-- ended. Ignores the batch that is being acknowledged, and p_held, which this session is still delivering. exhausted =
-- a batch after too many attempts.
CREATE OR REPLACE FUNCTION mailroom_find_abandoned(p_queue text, p_open_from bigint, p_take_over boolean,
    p_ack bigint, p_ack_attempt integer, p_held bigint DEFAULT NULL,
    OUT abandoned bigint, OUT exhausted bigint, OUT oldest_open bigint)
LANGUAGE plpgsql AS $$
DECLARE
    r record;
BEGIN
    FOR r IN
        SELECT b.id, b.collector, b.attempts, b.claimed_at FROM mailroom_batches b
        WHERE b.queue = p_queue AND b.id >= p_open_from AND b.emitted_at IS NULL AND b.dead_at IS NULL
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
-- expired, or has read 10,000; ids = those found, seen = all that were read, others = how many of them have other
-- actions. It does not read accounts: the fetch reads them anyway and skips tokens of the wrong status. It runs several
-- statements: the proof only requires that each takes its snapshot before the caller has a transaction id. Most steps
-- are one gap-free range of one kind, which its two ends describe. Only other steps are read id by id, which takes
-- several times as long. A step with too many due tokens is repeated with a shorter limit. Raises MR009 for one that was loaded from
-- another database.
CREATE OR REPLACE FUNCTION mailroom_window(p_after bigint, p_top bigint, p_limit integer, p_actions token_action[],
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
                     mailroom_takes(p_actions, action) AND mailroom_is_live(tokens.consumed_at, expires_at, v_now) AS is_due
              FROM tokens WHERE id > last AND id <= p_top ORDER BY id LIMIT v_step) t;
        EXIT WHEN r.found = 0;
        -- By itself, since an index has all that the other statements read: tokens that are not due cost no look at their rows.
        IF r.due > 0 THEN
            PERFORM mailroom_require_own(r.seen)
            WHERE EXISTS (
                SELECT FROM tokens t
                WHERE t.id > mailroom_window.last AND t.id <= r.last AND t.home IS DISTINCT FROM mailroom_home_number()
                  AND mailroom_takes(p_actions, t.action) AND mailroom_is_live(t.consumed_at, t.expires_at, v_now));
        END IF;
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
                     mailroom_takes(p_actions, action) AND mailroom_is_live(tokens.consumed_at, expires_at, v_now) AS is_due
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

-- The same as mailroom_window() for the usual claim of a queue that takes some actions: the first due tokens after
-- p_after, p_limit of them, or fewer if the tokens up to p_top have no more. seen = how many tokens are up to last;
-- mask has a bit for each, set for those that are due. messages: whether a token that was read is of a message. Returns
-- no row if this case needs more: few of the tokens are the queue's, one of these is expired, consumed or loaded, or an id is
-- missing. Reads as many tokens as p_limit should need at the share of due ones so far, and cuts what it has read too
-- much: nothing is read twice. The subquery has no join, so the bits are in its order.
CREATE OR REPLACE FUNCTION mailroom_filtered_range(p_after bigint, p_top bigint, p_limit integer, p_actions token_action[],
    OUT due integer, OUT last bigint, OUT seen integer, OUT mask bit varying, OUT messages boolean)
RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE
    v_end bigint := least(p_top, p_after + least(p_limit * 10 + 20, 30000));
    v_now bigint := floor(extract(epoch FROM clock_timestamp()));
    v_step integer := CASE WHEN p_limit < 1000 THEN 2 * p_limit + 20 ELSE p_limit END;
    v_bits text;
    v_read bigint;
    v_low integer := p_limit;
    v_middle integer;
    v_messages bigint;
BEGIN
    due := 0; seen := 0; last := p_after; mask := ''; messages := false;
    WHILE due < p_limit AND last < v_end LOOP
        SELECT max(t.id), string_agg(t.bit, ''), count(t.message) INTO v_read, v_bits, v_messages
        FROM (SELECT id, message, CASE WHEN NOT mailroom_takes(p_actions, action) THEN '0'
                              WHEN mailroom_is_live(consumed_at, expires_at, v_now) AND home = mailroom_home_number() THEN '1' ELSE '-' END AS bit
              FROM tokens WHERE id > last AND id <= v_end ORDER BY id LIMIT v_step) t;
        EXIT WHEN v_read IS NULL;
        last := v_read; mask := mask || replace(v_bits, '-', '')::bit varying; messages := messages OR v_messages > 0;
        due := bit_count(mask); seen := length(mask);
        -- Shorter than the ids that it covers: one is missing, expired or consumed.
        IF last - p_after > seen OR due = 0 THEN
            RETURN;
        END IF;
        EXIT WHEN length(v_bits) < v_step;
        v_step := (p_limit - due) * (seen / due::double precision) * 1.02 + 5;
    END LOOP;
    IF due > p_limit THEN
        WHILE v_low < seen LOOP
            v_middle := (v_low + seen) / 2;
            IF bit_count(substring(mask FROM 1 FOR v_middle)) < p_limit THEN
                v_low := v_middle + 1;
            ELSE
                seen := v_middle;
            END IF;
        END LOOP;
        due := p_limit; last := p_after + seen; mask := substring(mask FROM 1 FOR seen);
    END IF;
    IF due = p_limit OR v_end = p_top THEN
        RETURN NEXT;
    END IF;
END
$$;

-- Acknowledges p_receipt (if it is not null), then takes the next batch: an abandoned batch, or up to p_limit due
-- tokens: of the window, of gaps, and deferred ones whose time has come. p_delivers: outcomes of this batch will be
-- recorded. With p_partial false it takes only a full batch. With p_limit 0 it acknowledges p_receipt, updates
-- last_seq, and takes nothing; so does a claim of a queue that is paused, or whose budgets allow no token. p_collector
-- is the pid that mailroom_attach returned to this session. p_wake: a channel to notify if there are other queues,
-- whose collectors the inserts do not notify while this one polls; null for none. p_held: another open batch of this
-- session, which its sink has not finished; null for none. mailroom_fetch() returns the rows in the same statement,
-- mailroom_batch_rows() those of a large batch in a separate one.
--   size           how many tokens the batch holds
--   pending        due tokens that were seen and not taken: a partial batch, or tokens that late ones have displaced
--   last           every due token up to this id was seen; null with p_limit 0
--   more           true if another claim should follow at once
--   acknowledged   null without p_receipt; false if the batch had been taken over meanwhile
--   dead           a batch that became a dead letter in this claim, after 20 attempts
--   skipped        how many expired or consumed tokens this claim skipped, as recorded
--   expired        how many of them had expired; null for none, since each column of a usual claim costs
--   wait           seconds until the next token may be taken: 0 without a budget, infinity while the queue is paused
--   messages       whether the fetch has to look up messages: false only if no token of the batch is of one
--   unflushed      a batch for mailroom_flush(): this commit does not wait for the disk, as more waits and a claim of this session has
--                  waited for another in the last seconds. Until mailroom_flush() has returned, nothing of it may be relied on; or null
-- Needs a transaction of its own. Every read comes before the first write, so that the transaction id, the new gap's
-- horizon, is newer than each snapshot that the batch was made from.
--
-- A claim first checks for the usual case: no gap, no batch that was abandoned, no message that is being cancelled, and
-- a gap-free range of due tokens, and of tokens that the queue does not take. That case leaves no gap and takes four
-- statements in a row, five if other batches are in flight than those of p_receipt and p_held. mailroom_claim_any()
-- reads all others, and lets profiles take turns where more wait than a batch has room for. From 1,000 tokens on, a queue that takes all actions leaves this out: reading a range twice in the
-- other cases would cost more than the usual case saves.
CREATE OR REPLACE FUNCTION mailroom_claim(p_collector integer, p_queue text, p_limit integer, p_partial boolean,
    p_take_over boolean, p_publish boolean, p_delivers boolean, p_wake text, p_receipt mailroom_receipt,
    p_held bigint DEFAULT NULL,
    OUT batch bigint, OUT attempt integer, OUT size integer, OUT pending integer, OUT last bigint, OUT more boolean,
    OUT acknowledged boolean, OUT dead bigint, OUT skipped integer, OUT wait double precision, OUT expired integer,
    OUT messages boolean, OUT unflushed bigint)
LANGUAGE plpgsql
SET jit = off SET row_security = off SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    v_queue record;
    v_cursor bigint;
    v_due integer;
    v_seen integer;
    v_ids int8multirange;
    v_mask bit varying;
    v_gaps bigint[] := '{}';
    v_id bigint;
    v_limit integer := p_limit;
    v_is_paced boolean := false;
    v_paced record;
    v_take_over boolean := p_take_over;
    v_oldest bigint;
    v_is_at_home boolean;
BEGIN
    pending := 0; more := false; skipped := 0; wait := 0;
    IF pg_current_xact_id_if_assigned() IS NOT NULL OR current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'a claim needs a read committed transaction of its own' USING ERRCODE = 'MR003';
    END IF;
    IF p_collector <> pg_backend_pid() THEN
        RAISE EXCEPTION 'this is another session than the one that attached to the queue'
            USING ERRCODE = 'MR003', HINT = 'connect directly to the server, not through a pooler in transaction mode';
    END IF;
    -- Claims that wait for each other would wait for each other's commit to reach the disk.
    IF NOT pg_try_advisory_xact_lock(mailroom_lock_class('queue'), hashtext(p_queue)) THEN
        PERFORM pg_advisory_xact_lock(mailroom_lock_class('queue'), hashtext(p_queue));
        PERFORM set_config('mailroom.waited_at', floor(extract(epoch FROM clock_timestamp()))::bigint::text, false);
    END IF;
    SELECT b.cursor, (SELECT d.id FROM mailroom_last_drawn_token() d) AS top,
           CASE
               WHEN p_held IS NOT NULL THEN
                   b.id = p_held AND b.collector = p_collector AND b.emitted_at IS NULL AND b.dead_at IS NULL
                   AND NOT EXISTS (SELECT FROM mailroom_batches o
                                   WHERE o.queue = p_queue AND o.id >= b.open_from AND o.id < b.id
                                     AND o.emitted_at IS NULL AND o.dead_at IS NULL
                                     AND (o.id, o.attempts) IS DISTINCT FROM (p_receipt.batch, p_receipt.attempt))
               WHEN b.open_from <> b.id THEN false
               WHEN p_receipt.batch IS NULL THEN b.emitted_at IS NOT NULL
               ELSE b.id = p_receipt.batch AND b.attempts = p_receipt.attempt AND b.emitted_at IS NULL
           END AS is_alone,
           b.gap_ids = '{}' AND NOT EXISTS (SELECT FROM mailroom_deliveries d
                               WHERE d.queue = p_queue AND d.not_before <= (SELECT clock_timestamp())) AS is_usual,
           b.open_from, b.id AS newest,
           q.actions, q.budgets <> '{}' AS is_paced, q.budgets, q.paused_at, q.dropped_at,
           pg_try_advisory_xact_lock(mailroom_lock_class('cancel'), hashtext(p_queue)) AS is_calm
    INTO v_queue
    FROM (SELECT) one LEFT JOIN LATERAL (
        SELECT * FROM mailroom_batches WHERE queue = p_queue ORDER BY id DESC LIMIT 1) b ON true
    LEFT JOIN mailroom_queues q ON q.name = p_queue;
    IF v_queue.dropped_at IS NOT NULL THEN
        RAISE EXCEPTION 'unknown queue "%"', p_queue USING ERRCODE = 'MR001';
    ELSIF v_queue.paused_at IS NOT NULL THEN
        v_limit := 0;
        wait := 'infinity';
    ELSIF v_queue.is_paced AND p_limit > 0 THEN
        v_is_paced := true;
        v_paced := mailroom_claim_limit(p_queue, v_queue.budgets, p_limit, p_partial, p_take_over,
                                        coalesce(v_queue.cursor, (SELECT s.cursor FROM mailroom_queue_state(p_queue) s)),
                                        v_queue.top, v_queue.actions, p_receipt, p_held);
        v_limit := v_paced.allowed;
        v_take_over := v_paced.take_over;
    END IF;
    v_cursor := v_queue.cursor;
    v_oldest := p_held;
    v_queue.is_usual := v_queue.is_usual AND v_queue.is_calm AND v_limit > 0 AND (v_limit < 1000 OR v_queue.actions IS NOT NULL)
        AND v_cursor <= v_queue.top;
    IF v_queue.is_usual AND NOT v_queue.is_alone THEN
        SELECT l.abandoned IS NULL AND l.exhausted IS NULL, l.oldest_open INTO v_queue.is_usual, v_oldest
        FROM mailroom_find_abandoned(p_queue, v_queue.open_from, v_take_over, p_receipt.batch, p_receipt.attempt,
                                     p_held) l;
    END IF;
    IF v_queue.is_usual THEN
        IF v_queue.actions IS NOT NULL THEN
            SELECT f.due, f.last, f.seen, f.mask, f.messages, (SELECT h.is_here FROM mailroom_tables_are_home() h)
            INTO v_due, last, v_seen, v_mask, messages, v_is_at_home
            FROM mailroom_filtered_range(v_cursor, v_queue.top, v_limit, v_queue.actions) f;
        ELSE
            SELECT count(*) FILTER (WHERE t.is_due), coalesce(max(t.id), v_cursor), count(t.message) > 0,
                   (SELECT h.is_here FROM mailroom_tables_are_home() h)
            INTO v_due, last, messages, v_is_at_home
            FROM (SELECT id, message, home = mailroom_home_number()
                         AND mailroom_is_live(consumed_at, expires_at, floor(extract(epoch FROM clock_timestamp()))::bigint) AS is_due
                  FROM tokens WHERE id > v_cursor AND id <= v_queue.top ORDER BY id LIMIT v_limit) t;
            v_seen := v_due;
        END IF;
    END IF;
    IF (last - v_cursor = v_seen) IS TRUE AND NOT (v_due = v_limit AND messages AND mailroom_takes_turns()) THEN
        acknowledged := mailroom_acknowledge(p_receipt);
        more := v_due = v_limit;
        IF v_due > 0 AND (more OR p_partial) THEN
            v_ids := int8multirange(int8range(v_cursor, last, '(]')); v_cursor := last; size := v_due;
            IF v_due = v_seen THEN
                v_mask := NULL;
            END IF;
        ELSE
            pending := v_due;
        END IF;
    ELSE
        v_mask := NULL; messages := true;
        SELECT c.batch, c.attempt, c.size, c.pending, c.last, c.more, c.acknowledged, c.dead, c.skipped, c.expired,
               c.ids, c.cursor, c.gap_ids, c.oldest_open
        INTO batch, attempt, size, pending, last, more, acknowledged, dead, skipped, expired, v_ids, v_cursor, v_gaps, v_oldest
        FROM mailroom_claim_any(p_queue, v_limit, p_partial, v_take_over, p_delivers, p_receipt, v_queue.actions, v_queue.is_calm,
                                p_held) c;
        SELECT h.is_here INTO v_is_at_home FROM mailroom_tables_are_home() h;
    END IF;
    -- A dump may have been restored beneath this session: the snapshot that has its tokens has its home, too. Tokens that were loaded
    -- are none of a usual claim, and mailroom_claim_any() refuses them.
    IF size > 0 AND v_is_at_home IS NOT TRUE THEN
        PERFORM mailroom_require_home();
    END IF;
    IF v_ids IS NOT NULL THEN
        v_id := nextval('mailroom_batches_id_seq');
        IF v_id <= v_queue.newest THEN
            PERFORM mailroom_require_newer('mailroom_batches', v_id, v_queue.newest);
        END IF;
        INSERT INTO mailroom_batches (id, queue, ids, ids_mask, collector, emitted_at, skipped_expired, skipped_consumed,
                                      cursor, open_from, gap_ids)
        OVERRIDING SYSTEM VALUE
        VALUES (v_id, p_queue, v_ids, v_mask, p_collector, CASE WHEN size = 0 THEN clock_timestamp() END,
                coalesce(expired, 0), skipped - coalesce(expired, 0), v_cursor, least(v_oldest, v_id), v_gaps);
        IF NOT isempty(v_ids) THEN
            batch := v_id; attempt := 1;
        END IF;
    END IF;
    IF v_cursor IS NOT NULL AND (p_publish OR v_limit = 0) THEN
        PERFORM mailroom_publish_cursor(p_queue, v_cursor);
    END IF;
    IF v_is_paced THEN
        IF size > 0 THEN
            PERFORM mailroom_debit(v_queue.budgets, size);
            wait := (SELECT a.wait FROM mailroom_allowance(v_queue.budgets, 1) a);
        ELSIF v_limit = 0 THEN
            pending := v_paced.seen; last := v_paced.last; wait := v_paced.wait;
        END IF;
    END IF;
    IF p_wake IS NOT NULL THEN
        PERFORM pg_notify(p_wake, '') FROM jobs j WHERE j.job_type <> p_queue LIMIT 1;
    END IF;
    IF more AND coalesce(nullif(current_setting('mailroom.waited_at', true), ''), '0')::bigint
                > floor(extract(epoch FROM clock_timestamp()))::bigint - 10 THEN
        unflushed := coalesce(batch, p_receipt.batch);
        PERFORM set_config('synchronous_commit', 'off', true) WHERE unflushed IS NOT NULL;
    END IF;
END
$$;

-- Returns when the commit of a claim that returned p_batch as unflushed is as durable as the session's commits are, and all before it:
-- this transaction writes something, too, so its own commit waits for the disk.
CREATE OR REPLACE FUNCTION mailroom_flush(p_batch bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM mailroom_batches WHERE id = p_batch FOR UPDATE;
END
$$;

-- True if this session serves several profiles, which take turns.
CREATE OR REPLACE FUNCTION mailroom_takes_turns() RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
RETURN coalesce(current_setting('mailroom.turns', true) = 'on', false);

-- Returns how many ids a multirange has.
CREATE OR REPLACE FUNCTION mailroom_ids_in(p_ids int8multirange) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (SELECT coalesce(sum(upper(g) - lower(g)), 0)::integer FROM unnest(p_ids) g);

-- Returns the tokens among p_ids that come later where each profile has its turn, the oldest first, until p_limit are taken. Tokens of
-- accounts have the profile of mails that name none.
CREATE OR REPLACE FUNCTION mailroom_passed_over(p_ids int8multirange, p_limit integer) RETURNS int8multirange LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT coalesce(range_agg(int8range(o.id, o.id, '[]')), '{}')
        FROM (
            SELECT w.id, row_number() OVER (ORDER BY w.turn, w.id) AS place
            FROM (
                SELECT t.id, row_number() OVER (PARTITION BY coalesce(nullif(m.profile, ''), 'default') ORDER BY t.id) AS turn
                FROM unnest(p_ids) u (g), LATERAL (
                    SELECT id, message FROM tokens WHERE tokens.id >= lower(u.g) AND tokens.id < upper(u.g)
                    ORDER BY tokens.id LIMIT 2000000000) t
                LEFT JOIN LATERAL (
                    SELECT profile FROM mailroom_messages WHERE t.message IS NOT NULL AND mailroom_messages.id = t.message LIMIT 1) m ON true) w) o
        WHERE o.place > p_limit);
END
$$;

-- The general case of mailroom_claim, under the claim's lock and settings. Acknowledges p_receipt between its reads and
-- its writes, and leaves one row for the claim to write: the batch of ids, empty for a record of skipped tokens, null
-- for none. cursor, gap_ids and oldest_open are those of that row. An abandoned batch is leased here, which leaves the
-- cursor null. Unless p_is_calm, tokens that a transaction in progress is changing are not leased: they become a gap, as if
-- they were not visible yet, which the next claims check. So do those that a session which takes turns passes over: it looks at up
-- to 2,000 tokens above the cursor and 1,000 of gaps, so that a mail of one profile does not wait for all of another's.
CREATE OR REPLACE FUNCTION mailroom_claim_any(p_queue text, p_limit integer, p_partial boolean, p_take_over boolean,
    p_delivers boolean, p_receipt mailroom_receipt, p_actions token_action[], p_is_calm boolean, p_held bigint DEFAULT NULL,
    OUT batch bigint, OUT attempt integer, OUT size integer, OUT pending integer, OUT last bigint, OUT more boolean,
    OUT acknowledged boolean, OUT dead bigint, OUT skipped integer, OUT expired integer,
    OUT ids int8multirange, OUT cursor bigint, OUT gap_ids bigint[], OUT oldest_open bigint)
LANGUAGE plpgsql AS $$
DECLARE
    v_state record;
    v_top bigint;
    v_lease record;
    v_window record;
    v_checks mailroom_gap_check[] := '{}';
    v_late integer := 0;
    v_late_left boolean := false;
    v_room integer;
    v_again bigint[];
    v_found int8multirange := '{}';
    v_seen integer;
    v_take boolean;
    v_changing int8multirange := '{}';
    v_changing_late integer := 0;
    v_look integer := CASE WHEN mailroom_takes_turns() THEN greatest(p_limit, least(p_limit * 20, 2000)) ELSE p_limit END;
    v_passed int8multirange;
BEGIN
    pending := 0; more := false; skipped := 0;
    v_state := mailroom_queue_state(p_queue);
    IF p_limit = 0 THEN
        acknowledged := mailroom_acknowledge(p_receipt);
        cursor := v_state.cursor;
        RETURN;
    END IF;
    SELECT d.id INTO v_top FROM mailroom_last_drawn_token() d;
    IF v_top < v_state.cursor THEN
        RAISE EXCEPTION 'the token sequence is at %, behind the cursor at %', v_top, v_state.cursor
            USING ERRCODE = 'MR002';
    END IF;

    v_lease := mailroom_find_abandoned(p_queue, v_state.open_from, p_take_over, p_receipt.batch, p_receipt.attempt,
                                        p_held);
    v_window := mailroom_window(v_state.cursor, v_top, CASE WHEN v_lease.abandoned IS NULL THEN v_look ELSE 0 END,
                                p_actions);
    -- What is not in the window gets what the window leaves, and at least half of the batch. Deferred tokens and gaps
    -- get half of that each, if both need it.
    v_room := CASE WHEN v_lease.abandoned IS NULL THEN greatest(v_look - v_window.due, (v_look + 1) / 2) ELSE 0 END;
    v_again := ARRAY(SELECT d.token FROM mailroom_deliveries d
                     WHERE d.queue = p_queue AND d.not_before <= (SELECT clock_timestamp())
                     ORDER BY d.not_before LIMIT least(v_room, p_limit));
    IF v_state.gap_ids <> '{}' THEN
        SELECT h.checks, h.found_total, h.out_of_budget INTO v_checks, v_late, v_late_left
        FROM mailroom_check_gaps(v_state.gap_ids, v_room - least(cardinality(v_again), v_room / 2), p_actions) h;
    END IF;
    v_again := v_again[1 : v_room - v_late];
    v_late := v_late + cardinality(v_again);
    v_seen := v_window.due + v_late;
    IF v_seen > v_look THEN
        v_window := mailroom_window(v_state.cursor, v_top, v_look - v_late, p_actions);
    END IF;

    IF v_late > 0 THEN
        v_found := coalesce((SELECT range_agg(g) FROM unnest(v_checks) l, unnest(l.taken) g), '{}');
    END IF;
    last := CASE WHEN v_late_left THEN upper(v_found) - 1 ELSE v_window.last END;
    IF v_again <> '{}' THEN
        v_found := v_found + (SELECT range_agg(int8range(x, x, '[]')) FROM unnest(v_again) x);
    END IF;
    IF v_late > 0 THEN
        PERFORM mailroom_require_own(v_found);
    END IF;
    IF NOT p_is_calm THEN
        SELECT coalesce(range_agg(int8range(c.id, c.id, '[]')), '{}'), count(*) FILTER (WHERE v_found @> c.id),
               v_window.due - count(*) FILTER (WHERE NOT v_found @> c.id)
        INTO v_changing, v_changing_late, v_window.due
        FROM mailroom_changing_tokens(v_window.ids + v_found) c (id);
        v_late := v_late - v_changing_late;
    END IF;
    IF v_look > p_limit AND v_window.due + v_late > p_limit THEN
        v_passed := mailroom_passed_over(v_window.ids + v_found - v_changing, p_limit);
        v_changing := v_changing + v_passed;
        v_late := v_late - mailroom_ids_in(v_passed * v_found);
        v_window.due := v_window.due - mailroom_ids_in(v_passed - v_found);
    END IF;
    acknowledged := mailroom_acknowledge(p_receipt);
    IF v_lease.exhausted IS NOT NULL THEN
        dead := v_lease.exhausted;
        UPDATE mailroom_batches SET dead_at = clock_timestamp() WHERE id = dead;
        IF p_delivers THEN
            PERFORM mailroom_record_outcomes(p_queue, dead, i.ids, (
                SELECT jsonb_agg(jsonb_build_object(
                    'first', lower(r), 'last', upper(r) - 1,
                    'state', CASE WHEN i.has_begun THEN 'unknown' ELSE 'rejected' END, 'unknowns', i.has_begun::integer,
                    'reply', 'its batch was dead-lettered after too many attempts'
                             || CASE WHEN i.has_begun THEN '' ELSE ', none of which reached the receiver' END))
                FROM unnest(i.ids) r))
            FROM mailroom_batches b, LATERAL (
                SELECT mailroom_batch_ids(b.ids, b.ids_mask),
                       b.begun IS NOT NULL OR b.earlier_attempts @? '$[*].begun[*]') i (ids, has_begun)
            WHERE b.id = dead;
        END IF;
    END IF;
    IF v_lease.abandoned IS NOT NULL THEN
        PERFORM mailroom_require_own(mailroom_batch_ids(b.ids, b.ids_mask)) FROM mailroom_batches b WHERE b.id = v_lease.abandoned;
        more := true;
        UPDATE mailroom_batches b
        SET collector = pg_backend_pid(), claimed_by = current_setting('application_name'),
            attempts = b.attempts + 1, claimed_at = clock_timestamp(), key = nullif(current_setting('mailroom.key', true), ''),
            begun = nullif(current_setting('mailroom.begun', true), '')::text[],
            earlier_attempts = coalesce(b.earlier_attempts, '[]') || jsonb_build_object(
                'attempt', b.attempts, 'collector', b.collector, 'claimed_by', b.claimed_by, 'claimed_at', b.claimed_at,
                'key', b.key, 'begun', coalesce(to_jsonb(b.begun), '[]'))
        WHERE b.id = v_lease.abandoned
        RETURNING b.id, b.attempts, (SELECT coalesce(sum(upper(g) - lower(g)), 0) FROM unnest(mailroom_batch_ids(b.ids, b.ids_mask)) g)
        INTO batch, attempt, size;
        RETURN;
    END IF;

    more := v_passed IS NOT NULL OR v_seen - v_changing_late >= p_limit OR v_window.capped OR (v_late_left AND v_changing_late = 0);
    v_take := more OR p_partial OR v_seen = 0;
    cursor := v_state.cursor; oldest_open := v_lease.oldest_open;
    pending := v_seen - CASE WHEN v_take THEN v_window.due + v_late ELSE 0 END;
    IF v_checks <> '{}' THEN
        PERFORM mailroom_update_gaps(v_checks, v_take);
    END IF;
    -- A few tokens of other actions are not worth a row: the next claim reads them again.
    IF v_take AND v_seen = 0 AND v_checks = '{}' AND v_window.rows_read = v_window.others AND v_window.others < 1000 THEN
        v_take := false;
    END IF;
    IF v_take THEN
        UPDATE mailroom_deliveries d SET not_before = NULL WHERE d.queue = p_queue AND d.token = ANY (v_again);
        size := v_window.due + v_late;
        skipped := v_window.expired + v_window.consumed; expired := nullif(v_window.expired, 0);
        IF size > 0 OR v_window.last > v_state.cursor OR NOT isempty(v_changing) THEN
            ids := v_window.ids + v_found - v_changing;
            gap_ids := mailroom_open_gap(v_state.gap_ids, v_state.cursor, v_window.last, v_window.seen, v_changing);
        END IF;
        cursor := v_window.last;
    END IF;
END
$$;
