-- The claim: acknowledge one batch and take the next, in one short transaction.
--
-- New functions; locks nothing. At run time a claim holds the advisory lock (mailroom_lock_class('queue'), hashtext(queue))
-- until it commits, and each collector's session holds (mailroom_lock_class('collector'), its backend's pid) until it ends.
--
-- Custom SQLSTATEs: MR001 unknown queue, MR002 a sequence is behind the cursor or its table, MR003 the session or transaction
-- cannot hold a claim.

-- What a collector says of a batch that it has emitted. skipped_ids are the tokens that were not emitted; the counts
-- expired to invalid say why. A sink with outcomes adds one for each token that it was given: an array of objects with
-- first and last (the tokens that have this outcome), state (as in mailroom_deliveries), attempts and unknowns (how many to
-- add), wait (seconds until a deferred token may be tried again), ago (seconds since the answer), sink, code and reply.
-- signed_ago and written_ago are the microseconds since its last token was signed, and since the sink had finished it; null
-- if unknown.
CREATE TYPE mailroom_receipt AS (
    batch        bigint,
    attempt      integer,
    emitted      integer,
    expired      integer,
    consumed     integer,
    wrong_status integer,
    invalid      integer,
    skipped_ids  int8multirange,
    outcomes     jsonb,
    signed_ago   bigint,
    written_ago  bigint
);

-- The records that outcomes make at p_now, of p_ids. A deferred token that would be tried again later than a minute before it
-- expires is expired. It has no SET clause, so that queries inline it.
CREATE FUNCTION mailroom_outcome_records(p_ids int8multirange, p_outcomes jsonb, p_now timestamptz)
RETURNS TABLE (token bigint, state text, attempts integer, unknowns integer, not_before timestamptz, accepted_at timestamptz,
               answered_at timestamptz, sink text, code integer, reply text)
LANGUAGE sql STABLE AS $$
    SELECT g.id, s.state, coalesce(o.attempts, 0), coalesce(o.unknowns, 0),
           CASE WHEN s.state = 'deferred' THEN p_now + o.wait * interval '1 second' END,
           CASE WHEN s.state = 'accepted' THEN p_now END, p_now - o.ago * interval '1 second', CASE WHEN x.is_deleted THEN NULL ELSE o.sink END,
           CASE WHEN x.is_deleted THEN NULL ELSE o.code END,
           CASE WHEN x.is_deleted THEN 'the token was deleted' ELSE o.reply END
    FROM jsonb_to_recordset(p_outcomes) o (first bigint, last bigint, state text, attempts integer, unknowns integer,
                                           wait double precision, ago double precision, sink text, code integer, reply text),
    LATERAL generate_series(o.first, o.last) g (id),
    LATERAL (SELECT CASE
        WHEN o.state <> 'deferred' THEN o.state
        WHEN extract(epoch FROM p_now) + o.wait > e.expires_at - 60 THEN 'expired'
        WHEN e.expires_at IS NULL THEN 'cancelled'
        ELSE o.state
    END FROM (SELECT (SELECT t.expires_at FROM tokens t WHERE t.id = g.id) AS expires_at) e) s (state),
    LATERAL (SELECT s.state = 'cancelled' AND o.state = 'deferred') x (is_deleted)
    WHERE g.id <@ p_ids
$$;

-- The earlier outcomes of a delivery with its present one, which another is to follow: earlier_attempts as it is written then.
-- A deferral without a reply that nothing precedes says nothing of the token. It has a body parsed here and no SET clause, so that queries inline it.
CREATE FUNCTION mailroom_outcomes_so_far(p_delivery mailroom_deliveries) RETURNS jsonb LANGUAGE sql STABLE
RETURN CASE WHEN (p_delivery).state = 'deferred' AND (p_delivery).reply IS NULL AND (p_delivery).earlier_attempts IS NULL THEN NULL
    ELSE coalesce((p_delivery).earlier_attempts, '[]') || jsonb_build_object(
        'at', (p_delivery).last_at, 'state', (p_delivery).state, 'sink', (p_delivery).sink, 'code', (p_delivery).code,
        'reply', (p_delivery).reply) END;

-- Records the outcomes of a batch: of p_ids, the ids that it still has, since a rewind may have taken others to emit them
-- again. A token without an outcome has been deleted. Never changes what a newer batch has recorded. Every outcome stays on
-- record: a new one moves the one before to earlier_attempts. Only a deferral without a reply, which says nothing of the token,
-- leaves an earlier deferral and its time as they are. Usually none of the tokens has a record, and a plain INSERT costs two thirds.
CREATE FUNCTION mailroom_record_outcomes(p_queue text, p_batch bigint, p_ids int8multirange, p_outcomes jsonb)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_deleted int8multirange := p_ids - coalesce(
        (SELECT range_agg(int8range(o.first, o.last, '[]')) FROM jsonb_to_recordset(p_outcomes) o (first bigint, last bigint)), '{}');
BEGIN
    IF NOT isempty(v_deleted) THEN
        p_outcomes := coalesce(p_outcomes, '[]') || (
            SELECT jsonb_agg(jsonb_build_object('first', lower(r), 'last', upper(r) - 1, 'state', 'cancelled',
                                                'reply', 'the token was deleted'))
            FROM unnest(v_deleted) r);
    END IF;
    IF NOT EXISTS (SELECT FROM mailroom_deliveries d
                   WHERE d.queue = p_queue AND d.token >= lower(p_ids) AND d.token < upper(p_ids)) THEN
        INSERT INTO mailroom_deliveries (queue, token, state, attempts, unknowns, not_before, batch, first_at, last_at,
                                         accepted_at, answered_at, sink, code, reply)
        SELECT p_queue, r.token, r.state, r.attempts, r.unknowns, r.not_before, p_batch, v_now, v_now,
               r.accepted_at, r.answered_at, r.sink, r.code, r.reply
        FROM mailroom_outcome_records(p_ids, p_outcomes, v_now) r;
        RETURN;
    END IF;
    INSERT INTO mailroom_deliveries AS d (queue, token, state, attempts, unknowns, not_before, batch, first_at, last_at,
                                          accepted_at, answered_at, sink, code, reply)
    SELECT p_queue, r.token, r.state, r.attempts, r.unknowns, r.not_before, p_batch, v_now, v_now,
           r.accepted_at, r.answered_at, r.sink, r.code, r.reply
    FROM mailroom_outcome_records(p_ids, p_outcomes, v_now) r
    ON CONFLICT ON CONSTRAINT mailroom_deliveries_pkey DO UPDATE SET
        state = excluded.state, attempts = d.attempts + excluded.attempts, unknowns = d.unknowns + excluded.unknowns,
        not_before = excluded.not_before, batch = excluded.batch,
        accepted_at = coalesce(excluded.accepted_at, d.accepted_at),
        (last_at, answered_at, sink, code, reply, earlier_attempts) = (
            SELECT CASE WHEN s.keeps THEN d.last_at ELSE excluded.last_at END,
                   CASE WHEN s.is_silent THEN d.answered_at ELSE coalesce(excluded.answered_at, d.answered_at) END,
                   CASE WHEN s.keeps THEN d.sink ELSE excluded.sink END,
                   CASE WHEN s.keeps THEN d.code ELSE excluded.code END,
                   CASE WHEN s.keeps THEN d.reply ELSE excluded.reply END,
                   CASE WHEN s.keeps THEN d.earlier_attempts ELSE mailroom_outcomes_so_far(d) END
            FROM (SELECT t.is_silent, t.is_silent AND d.state = 'deferred' AS keeps
                  FROM (SELECT excluded.state = 'deferred' AND excluded.reply IS NULL AS is_silent) t) s)
    WHERE d.batch < excluded.batch;
END
$$;

-- Closes a lease. The attempt number fences the lease, not the session: an acknowledgement is valid after a
-- reconnect, and void after a take-over (false). Repeating it after a lost reply is harmless. Returns null without a
-- batch. Adds expired and consumed to the skipped tokens that the claim counted. Records outcomes only for a batch
-- that is not acknowledged yet, so that a repeated receipt changes nothing.
CREATE FUNCTION mailroom_acknowledge(p_receipt mailroom_receipt)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_queue text;
    v_ids int8multirange;
BEGIN
    IF p_receipt.batch IS NULL THEN
        RETURN NULL;
    END IF;
    IF p_receipt.outcomes IS NOT NULL THEN
        SELECT b.job_type, mailroom_batch_ids(b.ids, b.ids_mask) INTO v_queue, v_ids FROM mailroom_batches b
        WHERE b.id = p_receipt.batch AND b.attempts = p_receipt.attempt AND b.emitted_at IS NULL FOR UPDATE;
        IF FOUND THEN
            PERFORM mailroom_record_outcomes(v_queue, p_receipt.batch, v_ids, p_receipt.outcomes);
        END IF;
    END IF;
    UPDATE mailroom_batches SET
        signed_at = clock_timestamp() - p_receipt.signed_ago * interval '1 microsecond',
        written_at = clock_timestamp() - p_receipt.written_ago * interval '1 microsecond',
        emitted_at = clock_timestamp(),
        ids = CASE WHEN isempty(p_receipt.skipped_ids) THEN ids
              ELSE mailroom_batch_ids(ids, ids_mask) - p_receipt.skipped_ids END,
        ids_mask = CASE WHEN isempty(p_receipt.skipped_ids) THEN ids_mask END,
        skipped_ids = p_receipt.skipped_ids,
        emitted = p_receipt.emitted,
        skipped_expired = skipped_expired + p_receipt.expired,
        skipped_consumed = skipped_consumed + p_receipt.consumed,
        skipped_status = p_receipt.wrong_status,
        skipped_invalid = p_receipt.invalid
    WHERE id = p_receipt.batch AND attempts = p_receipt.attempt AND emitted_at IS NULL;
    IF FOUND THEN
        RETURN true;
    END IF;
    RETURN EXISTS (SELECT FROM mailroom_batches
                   WHERE id = p_receipt.batch AND attempts = p_receipt.attempt AND emitted_at IS NOT NULL);
END
$$;

-- Copies the cursor to jobs.last_seq, for people and scripts that read it. No decision depends on it, so a locked row
-- is updated next time.
CREATE FUNCTION mailroom_publish_cursor(p_queue text, p_cursor bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM jobs WHERE job_type = p_queue AND last_seq IS DISTINCT FROM p_cursor FOR UPDATE SKIP LOCKED;
    IF FOUND THEN
        UPDATE jobs SET last_seq = p_cursor WHERE job_type = p_queue;
    END IF;
END
$$;

-- Stores the results of the gap checks. A gap whose visible ids are not taken now stays unchanged.
CREATE FUNCTION mailroom_update_gaps(p_checks mailroom_gap_check[], p_taken boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    r mailroom_gap_check;
BEGIN
    FOREACH r IN ARRAY p_checks LOOP
        CONTINUE WHEN NOT p_taken AND NOT isempty(r.found);
        IF r.pending = '{}' AND NOT r.may_hold_more THEN
            DELETE FROM mailroom_gaps WHERE id = r.id;
        ELSE
            UPDATE mailroom_gaps
            SET ids = ids - r.found, pending = CASE WHEN NOT r.may_hold_more THEN r.pending END
            WHERE id = r.id;
        END IF;
    END LOOP;
END
$$;

-- What the budgets of a queue allow now, by the generic cell rate algorithm (ITU-T I.371): allowed = how many tokens may be
-- taken, burst = how many at most at once, wait = seconds until p_needed tokens may be (or the burst, if that is less).
-- Holds the advisory lock (mailroom_lock_class('budget'), hashtext(budget)) of each until the transaction ends. A row lock would give the
-- transaction an id before the claim's reads. Takes the locks in the order of the names, and reads in a separate
-- statement, which sees what the last holders of the locks have taken.
CREATE FUNCTION mailroom_allowance(p_budgets text[], p_needed integer,
    OUT allowed integer, OUT burst integer, OUT wait double precision)
LANGUAGE plpgsql AS $$
DECLARE
    v_name text;
    v_now timestamptz;
BEGIN
    FOREACH v_name IN ARRAY ARRAY(SELECT b FROM unnest(p_budgets) b ORDER BY b) LOOP
        PERFORM pg_advisory_xact_lock(mailroom_lock_class('budget'), hashtext(v_name));
    END LOOP;
    v_now := clock_timestamp();
    SELECT min(floor(b.burst - s.ahead / s.gap)), min(b.burst),
           greatest(max(s.ahead - (b.burst - least(p_needed, b.burst)) * s.gap), 0)
    INTO allowed, burst, wait
    FROM mailroom_budgets b,
    LATERAL (SELECT extract(epoch FROM b.period)::double precision / b.tokens AS gap,
                    extract(epoch FROM greatest(b.taken_until, v_now) - v_now)::double precision AS ahead) s
    WHERE b.name = ANY (p_budgets);
END
$$;

-- Takes p_tokens from the budgets of a queue, whose locks the transaction holds. Rounds up to microseconds, so that no rate
-- is exceeded.
CREATE FUNCTION mailroom_debit(p_budgets text[], p_tokens integer) RETURNS void LANGUAGE sql AS $$
    UPDATE mailroom_budgets b
    SET taken_until = greatest(b.taken_until, clock_timestamp())
        + ceil(extract(epoch FROM b.period) * 1000000 * p_tokens / b.tokens)::bigint * interval '1 microsecond'
    WHERE b.name = ANY (p_budgets)
$$;

-- How many tokens a claim of p_limit may take within the budgets of its queue, and the wait until the next may be taken.
-- An abandoned batch is leased whole, so it waits until that many may be taken, or the burst is full; one that a rewind has
-- emptied does not wait. A claim that wants a full batch waits until the budgets allow one if enough tokens are due; if fewer
-- are, it takes none, and seen and last say what it saw. take_over: false if no batch is abandoned and the burst is not full,
-- so that one which becomes abandoned a moment later waits for the next claim.
CREATE FUNCTION mailroom_claim_limit(p_queue text, p_budgets text[], p_limit integer, p_partial boolean, p_take_over boolean,
    p_cursor bigint, p_top bigint, p_actions token_action[], p_receipt mailroom_receipt, p_held bigint DEFAULT NULL,
    OUT allowed integer, OUT seen integer, OUT last bigint, OUT wait double precision, OUT take_over boolean)
LANGUAGE plpgsql AS $$
DECLARE
    v_now record;
    v_needed integer;
BEGIN
    v_now := mailroom_allowance(p_budgets, 1);
    -- Less than none is allowed after a batch that was larger than the burst.
    allowed := greatest(least(p_limit, v_now.allowed), 0); wait := coalesce(v_now.wait, 0); seen := 0;
    take_over := p_take_over;
    IF v_now.allowed < v_now.burst THEN
        SELECT (SELECT coalesce(sum(upper(g) - lower(g)), 0)
                FROM mailroom_batches b, unnest(mailroom_batch_ids(b.ids, b.ids_mask)) g WHERE b.id = f.abandoned)
        INTO v_needed
        FROM mailroom_queue_state(p_queue) s,
             mailroom_find_abandoned(p_queue, s.open_from, p_take_over, p_receipt.batch, p_receipt.attempt, p_held) f
        WHERE f.abandoned IS NOT NULL;
        take_over := p_take_over AND v_needed IS NOT NULL;
        IF v_needed IS NULL AND NOT p_partial AND allowed < least(p_limit, v_now.burst) THEN
            SELECT w.due, w.last INTO seen, last FROM mailroom_window(p_cursor, p_top, p_limit, p_actions) w;
            IF seen BETWEEN 1 AND p_limit - 1 THEN
                allowed := 0;
                RETURN;
            ELSIF seen > 0 THEN
                v_needed := p_limit; seen := 0; last := NULL;
            END IF;
        END IF;
        IF v_needed IS NOT NULL AND v_now.allowed < least(v_needed, v_now.burst) THEN
            allowed := 0;
            wait := (SELECT a.wait FROM mailroom_allowance(p_budgets, v_needed) a);
        ELSIF v_needed = 0 THEN
            allowed := p_limit;
        END IF;
    END IF;
END
$$;

-- The same as mailroom_window() for the usual claim of a queue that takes some actions: the first due tokens after p_after,
-- p_limit of them, or fewer if the tokens up to p_top have no more. seen = how many tokens are up to last; mask has a bit for
-- each, set for those that are due. Returns no row if this case needs more: few of the tokens are the queue's, one of these
-- is expired or consumed, or an id is missing. Reads as many tokens as p_limit should need at the share of due ones so far,
-- and cuts what it has read too much: nothing is read twice. The subquery has no join, so the bits are in its order.
CREATE FUNCTION mailroom_filtered_range(p_after bigint, p_top bigint, p_limit integer, p_actions token_action[],
    OUT due integer, OUT last bigint, OUT seen integer, OUT mask bit varying)
RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE
    v_end bigint := least(p_top, p_after + least(p_limit * 10 + 20, 30000));
    v_now bigint := floor(extract(epoch FROM clock_timestamp()));
    v_action token_action := p_actions[1];
    v_is_only boolean := cardinality(p_actions) = 1;
    v_step integer := CASE WHEN p_limit < 1000 THEN 2 * p_limit + 20 ELSE p_limit END;
    v_bits text;
    v_read bigint;
    v_low integer := p_limit;
    v_middle integer;
BEGIN
    due := 0; seen := 0; last := p_after; mask := '';
    WHILE due < p_limit AND last < v_end LOOP
        SELECT max(t.id), string_agg(t.bit, '') INTO v_read, v_bits
        FROM (SELECT id, CASE WHEN action <> v_action AND (v_is_only OR action <> ALL (p_actions)) THEN '0'
                              WHEN consumed_at IS NULL AND expires_at > v_now THEN '1' ELSE '-' END AS bit
              FROM tokens WHERE id > last AND id <= v_end ORDER BY id LIMIT v_step) t;
        EXIT WHEN v_read IS NULL;
        last := v_read; mask := mask || replace(v_bits, '-', '')::bit varying;
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

-- Acknowledges p_receipt (if it is not null), then takes the next batch: an abandoned batch, or up to p_limit due tokens:
-- of the window, of gaps, and deferred ones whose time has come. p_delivers: outcomes of this batch will be recorded. With
-- p_partial false it takes only a full batch. With p_limit 0 it acknowledges p_receipt, updates last_seq, and takes
-- nothing; so does a claim of a queue that is paused, or whose budgets allow no token. p_collector is the pid that
-- mailroom_attach returned to this session. p_wake: a channel to notify if there are other queues, whose collectors the
-- inserts do not notify while this one polls; null for none. p_held: another open batch of this session, which its sink
-- has not finished; null for none. mailroom_fetch() returns the rows in the same statement,
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
-- Needs a transaction of its own. Every read comes before the first write, so that the transaction id, the new gap's
-- horizon, is newer than each snapshot that the batch was made from.
--
-- A claim first checks for the usual case: no gap, no batch that was abandoned, and a gap-free range of due tokens, and of
-- tokens that the queue does not take. That case leaves no gap and takes five statements in a row, six if other
-- batches are in flight than those of p_receipt and p_held. mailroom_claim_any() handles all others. From 1,000 tokens on, a queue that takes all actions leaves this out: reading a
-- range twice in the other cases would cost more than the usual case saves.
CREATE FUNCTION mailroom_claim(p_collector integer, p_queue text, p_limit integer, p_partial boolean,
    p_take_over boolean, p_publish boolean, p_delivers boolean, p_wake text, p_receipt mailroom_receipt,
    p_held bigint DEFAULT NULL,
    OUT batch bigint, OUT attempt integer, OUT size integer, OUT pending integer, OUT last bigint, OUT more boolean,
    OUT acknowledged boolean, OUT dead bigint, OUT skipped integer, OUT wait double precision, OUT expired integer)
LANGUAGE plpgsql
SET jit = off SET row_security = off SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    v_queue record;
    v_cursor bigint;
    v_due integer;
    v_seen integer;
    v_mask bit varying;
    v_limit integer := p_limit;
    v_is_paced boolean := false;
    v_paced record;
    v_take_over boolean := p_take_over;
    v_oldest bigint;
BEGIN
    pending := 0; more := false; skipped := 0; wait := 0;
    IF pg_current_xact_id_if_assigned() IS NOT NULL OR current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'a claim needs a read committed transaction of its own' USING ERRCODE = 'MR003';
    END IF;
    IF p_collector <> pg_backend_pid() THEN
        RAISE EXCEPTION 'this is another session than the one that attached to the queue'
            USING ERRCODE = 'MR003', HINT = 'connect directly to the server, not through a pooler in transaction mode';
    END IF;
    PERFORM pg_advisory_xact_lock(mailroom_lock_class('queue'), hashtext(p_queue));
    SELECT b.cursor, (SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM tokens_id_seq) AS top,
           CASE
               WHEN p_held IS NOT NULL THEN
                   b.id = p_held AND b.collector = p_collector AND b.emitted_at IS NULL AND b.dead_at IS NULL
                   AND NOT EXISTS (SELECT FROM mailroom_batches o
                                   WHERE o.job_type = p_queue AND o.id >= b.open_from AND o.id < b.id
                                     AND o.emitted_at IS NULL AND o.dead_at IS NULL
                                     AND (o.id, o.attempts) IS DISTINCT FROM (p_receipt.batch, p_receipt.attempt))
               WHEN b.open_from <> b.id THEN false
               WHEN p_receipt.batch IS NULL THEN b.emitted_at IS NOT NULL
               ELSE b.id = p_receipt.batch AND b.attempts = p_receipt.attempt AND b.emitted_at IS NULL
           END AS is_alone,
           b.gap_ids = '{}' AND NOT EXISTS (SELECT FROM mailroom_deliveries d
                               WHERE d.queue = p_queue AND d.not_before <= (SELECT clock_timestamp())) AS is_usual,
           b.open_from, (SELECT max(id) FROM mailroom_batches) AS newest,
           q.actions, q.budgets <> '{}' AS is_paced, q.budgets, q.paused_at, q.dropped_at
    INTO v_queue
    FROM (SELECT) one LEFT JOIN LATERAL (
        SELECT * FROM mailroom_batches WHERE job_type = p_queue ORDER BY id DESC LIMIT 1) b ON true
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
    v_queue.is_usual := v_queue.is_usual AND v_limit > 0 AND (v_limit < 1000 OR v_queue.actions IS NOT NULL)
        AND v_cursor <= v_queue.top;
    IF v_queue.is_usual AND NOT v_queue.is_alone THEN
        SELECT l.abandoned IS NULL AND l.exhausted IS NULL, l.oldest_open INTO v_queue.is_usual, v_oldest
        FROM mailroom_find_abandoned(p_queue, v_queue.open_from, v_take_over, p_receipt.batch, p_receipt.attempt,
                                     p_held) l;
    END IF;
    IF v_queue.is_usual THEN
        IF v_queue.actions IS NOT NULL THEN
            SELECT f.due, f.last, f.seen, f.mask INTO v_due, last, v_seen, v_mask
            FROM mailroom_filtered_range(v_cursor, v_queue.top, v_limit, v_queue.actions) f;
        ELSE
            SELECT count(*) FILTER (WHERE t.is_due), coalesce(max(t.id), v_cursor) INTO v_due, last
            FROM (SELECT id, consumed_at IS NULL AND expires_at > floor(extract(epoch FROM clock_timestamp()))::bigint AS is_due
                  FROM tokens WHERE id > v_cursor AND id <= v_queue.top ORDER BY id LIMIT v_limit) t;
            v_seen := v_due;
        END IF;
    END IF;
    IF (last - v_cursor = v_seen) IS TRUE THEN
        acknowledged := mailroom_acknowledge(p_receipt);
        more := v_due = v_limit;
        IF v_due > 0 AND (more OR p_partial) THEN
            batch := nextval('mailroom_batches_id_seq'); attempt := 1; size := v_due;
            IF batch <= v_queue.newest THEN
                PERFORM mailroom_require_newer('mailroom_batches', batch, v_queue.newest);
            END IF;
            INSERT INTO mailroom_batches (id, job_type, ids, ids_mask, collector, cursor, open_from, gap_ids)
            OVERRIDING SYSTEM VALUE
            VALUES (batch, p_queue, int8multirange(int8range(v_cursor, last, '(]')), CASE WHEN v_due < v_seen THEN v_mask END,
                    p_collector, last, least(v_oldest, batch), '{}');
            v_cursor := last;
        ELSE
            pending := v_due;
        END IF;
        IF p_publish THEN
            PERFORM mailroom_publish_cursor(p_queue, v_cursor);
        END IF;
    ELSE
        SELECT c.* INTO batch, attempt, size, pending, last, more, acknowledged, dead, skipped, expired
        FROM mailroom_claim_any(p_queue, v_limit, p_partial, v_take_over, p_publish, p_delivers, p_receipt,
                                v_queue.actions, p_held) c;
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
END
$$;

-- The general case of mailroom_claim; runs under the claim's lock and settings.
CREATE FUNCTION mailroom_claim_any(p_queue text, p_limit integer, p_partial boolean, p_take_over boolean, p_publish boolean,
    p_delivers boolean, p_receipt mailroom_receipt, p_actions token_action[], p_held bigint DEFAULT NULL,
    OUT batch bigint, OUT attempt integer, OUT size integer, OUT pending integer, OUT last bigint, OUT more boolean,
    OUT acknowledged boolean, OUT dead bigint, OUT skipped integer, OUT expired integer)
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
    v_batch record;
    v_found int8multirange := '{}';
    v_seen integer;
    v_take boolean;
BEGIN
    pending := 0; more := false; skipped := 0;
    v_state := mailroom_queue_state(p_queue);
    IF p_limit = 0 THEN
        acknowledged := mailroom_acknowledge(p_receipt);
        PERFORM mailroom_publish_cursor(p_queue, v_state.cursor);
        RETURN;
    END IF;
    SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END INTO v_top FROM tokens_id_seq;
    IF v_top < v_state.cursor THEN
        RAISE EXCEPTION 'the token sequence is at %, behind the cursor at %', v_top, v_state.cursor
            USING ERRCODE = 'MR002';
    END IF;

    v_lease := mailroom_find_abandoned(p_queue, v_state.open_from, p_take_over, p_receipt.batch, p_receipt.attempt,
                                        p_held);
    v_window := mailroom_window(v_state.cursor, v_top, CASE WHEN v_lease.abandoned IS NULL THEN p_limit ELSE 0 END,
                                p_actions);
    -- What is not in the window gets what the window leaves, and at least half of the batch. Deferred tokens and gaps get
    -- half of that each, if both need it.
    v_room := CASE WHEN v_lease.abandoned IS NULL THEN greatest(p_limit - v_window.due, (p_limit + 1) / 2) ELSE 0 END;
    v_again := ARRAY(SELECT d.token FROM mailroom_deliveries d
                     WHERE d.queue = p_queue AND d.not_before <= (SELECT clock_timestamp())
                     ORDER BY d.not_before LIMIT v_room);
    IF v_state.gap_ids <> '{}' THEN
        SELECT h.checks, h.found_total, h.out_of_budget INTO v_checks, v_late, v_late_left
        FROM mailroom_check_gaps(v_state.gap_ids, v_room - least(cardinality(v_again), v_room / 2), p_actions) h;
    END IF;
    v_again := v_again[1 : v_room - v_late];
    v_late := v_late + cardinality(v_again);
    v_seen := v_window.due + v_late;
    IF v_seen > p_limit THEN
        v_window := mailroom_window(v_state.cursor, v_top, p_limit - v_late, p_actions);
    END IF;

    IF v_late > 0 THEN
        v_found := coalesce((SELECT range_agg(g) FROM unnest(v_checks) l, unnest(l.taken) g), '{}');
    END IF;
    last := CASE WHEN v_late_left THEN upper(v_found) - 1 ELSE v_window.last END;
    IF v_again <> '{}' THEN
        v_found := v_found + (SELECT range_agg(int8range(x, x, '[]')) FROM unnest(v_again) x);
    END IF;
    acknowledged := mailroom_acknowledge(p_receipt);
    IF v_lease.exhausted IS NOT NULL THEN
        dead := v_lease.exhausted;
        UPDATE mailroom_batches SET dead_at = clock_timestamp() WHERE id = dead;
        IF p_delivers THEN
            PERFORM mailroom_record_outcomes(p_queue, dead, i.ids, (
                SELECT jsonb_agg(jsonb_build_object('first', lower(r), 'last', upper(r) - 1, 'state', 'unknown', 'unknowns', 1,
                                                    'reply', 'its batch was dead-lettered after too many attempts'))
                FROM unnest(i.ids) r))
            FROM mailroom_batches b, LATERAL mailroom_batch_ids(b.ids, b.ids_mask) i (ids) WHERE b.id = dead;
        END IF;
    END IF;
    IF v_lease.abandoned IS NOT NULL THEN
        more := true;
        UPDATE mailroom_batches b
        SET collector = pg_backend_pid(), claimed_by = current_setting('application_name'),
            attempts = b.attempts + 1, claimed_at = clock_timestamp(),
            earlier_attempts = coalesce(b.earlier_attempts, '[]') || jsonb_build_object(
                'attempt', b.attempts, 'collector', b.collector, 'claimed_by', b.claimed_by, 'claimed_at', b.claimed_at)
        WHERE b.id = v_lease.abandoned
        RETURNING b.id, b.attempts, (SELECT coalesce(sum(upper(g) - lower(g)), 0) FROM unnest(mailroom_batch_ids(b.ids, b.ids_mask)) g)
        INTO batch, attempt, size;
        RETURN;
    END IF;

    more := v_seen >= p_limit OR v_window.capped OR v_late_left;
    v_take := more OR p_partial OR v_seen = 0;
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
        v_batch := mailroom_append_batch(p_queue, v_state.cursor, v_state.gap_ids, v_lease.oldest_open, v_window.ids + v_found,
            v_window.seen, v_window.last, v_window.expired, v_window.consumed);
        batch := v_batch.batch; attempt := v_batch.attempt; size := v_window.due + v_late;
        skipped := v_window.expired + v_window.consumed; expired := nullif(v_window.expired, 0);
        v_state.cursor := v_batch.cursor;
    END IF;
    IF p_publish THEN
        PERFORM mailroom_publish_cursor(p_queue, v_state.cursor);
    END IF;
END
$$;

-- Appends the next row of a queue: a lease on p_ids, or a record of skipped tokens (batch is null) if p_ids is empty.
-- Ids up to p_last that were not seen become a gap. Appends nothing if there is nothing to record.
CREATE FUNCTION mailroom_append_batch(p_queue text, p_cursor bigint, p_gap_ids bigint[], p_oldest_open bigint,
    p_ids int8multirange, p_seen int8multirange, p_last bigint, p_expired integer, p_consumed integer,
    OUT batch bigint, OUT attempt integer, OUT cursor bigint)
LANGUAGE plpgsql AS $$
DECLARE
    v_unseen int8multirange := int8multirange(int8range(p_cursor, p_last, '(]')) - p_seen;
    v_gaps bigint[] := p_gap_ids;
    v_newest bigint;
    v_gap bigint;
    v_id bigint;
BEGIN
    cursor := p_last;
    IF isempty(p_ids) AND p_last = p_cursor THEN
        RETURN;
    END IF;
    IF NOT isempty(v_unseen) THEN
        v_newest := mailroom_newest_gap();
        INSERT INTO mailroom_gaps (ids, horizon) VALUES (v_unseen, pg_current_xact_id()) RETURNING id INTO v_gap;
        PERFORM mailroom_require_newer('mailroom_gaps', v_gap, v_newest);
        v_gaps := v_gaps || v_gap;
    END IF;
    IF v_gaps <> '{}' THEN
        v_gaps := mailroom_merge_gaps(v_gaps);
    END IF;
    v_newest := (SELECT max(b.id) FROM mailroom_batches b);
    v_id := nextval('mailroom_batches_id_seq');
    PERFORM mailroom_require_newer('mailroom_batches', v_id, v_newest);
    INSERT INTO mailroom_batches (id, job_type, ids, collector, emitted_at, skipped_expired, skipped_consumed,
                                  cursor, open_from, gap_ids)
    OVERRIDING SYSTEM VALUE
    VALUES (v_id, p_queue, p_ids, pg_backend_pid(), CASE WHEN isempty(p_ids) THEN clock_timestamp() END,
            p_expired, p_consumed, p_last, least(p_oldest_open, v_id), v_gaps);
    IF NOT isempty(p_ids) THEN
        batch := v_id;
        attempt := 1;
    END IF;
END
$$;

-- Records what a consumer has learned about its sinks, and notifies p_channel if one has become unavailable or available.
-- p_news: an array of objects with name, failures (0: it works), since, failed_at, probe_at (in seconds since 1970) and
-- reason. Older news does not replace newer. Returns those of p_names that are unavailable. With p_probe, a sink whose
-- probe_at has come is the caller's to try, and nobody else's for p_probe; its probe_at is returned as it was.
CREATE FUNCTION mailroom_share_sinks(p_channel text, p_news jsonb, p_names text[], p_probe interval)
RETURNS SETOF mailroom_sinks LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_changed boolean := false;
    r record;
BEGIN
    FOR r IN
        SELECT n.name, n.failures, to_timestamp(n.since) AS since, to_timestamp(n.failed_at) AS failed_at,
               to_timestamp(n.probe_at) AS probe_at, n.reason
        FROM jsonb_to_recordset(p_news) n (name text, failures integer, since double precision, failed_at double precision,
                                           probe_at double precision, reason text)
        ORDER BY n.name
    LOOP
        IF r.failures = 0 THEN
            DELETE FROM mailroom_sinks s WHERE s.name = r.name;
            v_changed := v_changed OR FOUND;
        ELSE
            v_changed := v_changed OR NOT EXISTS (SELECT FROM mailroom_sinks s WHERE s.name = r.name);
            INSERT INTO mailroom_sinks AS s (name, failures, since, failed_at, probe_at, reason)
            VALUES (r.name, r.failures, r.since, r.failed_at, r.probe_at, r.reason)
            ON CONFLICT (name) DO UPDATE
            SET failures = excluded.failures, failed_at = excluded.failed_at, probe_at = excluded.probe_at,
                reason = excluded.reason
            WHERE s.failed_at < excluded.failed_at;
        END IF;
    END LOOP;
    IF v_changed THEN
        PERFORM pg_notify(p_channel, 'sinks');
    END IF;
    RETURN QUERY SELECT s.* FROM mailroom_sinks s WHERE s.name = ANY (p_names) AND (p_probe IS NULL OR s.probe_at > v_now);
    RETURN QUERY
        WITH old AS MATERIALIZED (
            SELECT s.* FROM mailroom_sinks s
            WHERE s.name = ANY (p_names) AND p_probe IS NOT NULL AND s.probe_at <= v_now ORDER BY s.name FOR UPDATE),
        taken AS (UPDATE mailroom_sinks s SET probe_at = v_now + p_probe FROM old WHERE s.name = old.name)
        SELECT * FROM old;
END
$$;

-- Returns the minimum client: the newest migration that a mailroom must know to work on this schema. A migration that
-- breaks older clients replaces this function; they can read it without knowing that migration. It is a function
-- because every role may call it, and because any migration tool creates and drops it with the migration.
CREATE FUNCTION mailroom_minimum_client() RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 6;

DO $$
DECLARE
    v_function text;
BEGIN
    FOREACH v_function IN ARRAY ARRAY[
        'mailroom_record_outcomes(text, bigint, int8multirange, jsonb)', 'mailroom_acknowledge(mailroom_receipt)',
        'mailroom_publish_cursor(text, bigint)', 'mailroom_update_gaps(mailroom_gap_check[], boolean)',
        'mailroom_allowance(text[], integer)', 'mailroom_debit(text[], integer)',
        'mailroom_claim_limit(text, text[], integer, boolean, boolean, bigint, bigint, token_action[], mailroom_receipt, bigint)',
        'mailroom_filtered_range(bigint, bigint, integer, token_action[])',
        'mailroom_claim(integer, text, integer, boolean, boolean, boolean, boolean, text, mailroom_receipt, bigint)',
        'mailroom_claim_any(text, integer, boolean, boolean, boolean, boolean, mailroom_receipt, token_action[], bigint)',
        'mailroom_append_batch(text, bigint, bigint[], bigint, int8multirange, int8multirange, bigint, integer, integer)',
        'mailroom_share_sinks(text, jsonb, text[], interval)'
    ]
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', v_function, current_schema());
    END LOOP;
END
$$;
