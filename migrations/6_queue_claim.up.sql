-- The claim: acknowledge one batch and take the next, in one short transaction.
--
-- New functions; locks nothing. At run time a claim holds the advisory lock (1835100524, hashtext(queue)) until
-- it commits, and each collector's session holds (1835100525, its backend's pid) while it lives.
--
-- SQLSTATEs of our own: MR001 unknown queue, MR002 the sequence is behind the cursor, MR003 the session or
-- transaction cannot hold a claim.

-- Closes a lease. The attempt fences it, not the session: good after a reconnect, void after a take-over.
-- Saying it again, after a reply that was lost, is as good as once; null for no batch. The passed-over tokens that the claim
-- counted stay in the sum.
CREATE FUNCTION mailroom_acknowledge(p_batch bigint, p_attempt integer, p_emitted integer, p_expired integer,
                                     p_consumed integer, p_wrong_status integer, p_invalid integer,
                                     p_left_out int8multirange)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF p_batch IS NULL THEN
        RETURN NULL;
    END IF;
    UPDATE mailroom_batches SET
        emitted_at = clock_timestamp(),
        ids = ids - p_left_out,
        left_out = p_left_out,
        emitted = p_emitted,
        skipped_expired = skipped_expired + p_expired,
        skipped_consumed = skipped_consumed + p_consumed,
        skipped_status = p_wrong_status,
        skipped_invalid = p_invalid
    WHERE id = p_batch AND attempts = p_attempt AND emitted_at IS NULL;
    IF FOUND THEN
        RETURN true;
    END IF;
    RETURN EXISTS (SELECT FROM mailroom_batches WHERE id = p_batch AND attempts = p_attempt AND emitted_at IS NOT NULL);
END
$$;

-- Lets jobs.last_seq follow the cursor, for people and scripts that look at it. Nothing decides from it, so a
-- row that somebody has locked is left for the next time.
CREATE FUNCTION mailroom_publish_cursor(p_queue text, p_cursor bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM jobs WHERE job_type = p_queue AND last_seq IS DISTINCT FROM p_cursor FOR UPDATE SKIP LOCKED;
    IF FOUND THEN
        UPDATE jobs SET last_seq = p_cursor WHERE job_type = p_queue;
    END IF;
END
$$;

-- Writes down what the looks showed. A hole whose visible ids are not taken now stays as it is.
CREATE FUNCTION mailroom_settle_holes(p_looks mailroom_hole_look[], p_taken boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    r mailroom_hole_look;
BEGIN
    FOREACH r IN ARRAY p_looks LOOP
        CONTINUE WHEN NOT p_taken AND NOT isempty(r.found);
        IF r.pending = '{}' AND NOT r.may_hold_more THEN
            DELETE FROM mailroom_holes WHERE id = r.id;
        ELSE
            UPDATE mailroom_holes
            SET ids = ids - r.found, pending = CASE WHEN NOT r.may_hold_more THEN r.pending END
            WHERE id = r.id;
        END IF;
    END LOOP;
END
$$;

-- Acknowledges p_ack (if not null), then takes the next batch: an orphan, or up to p_limit due tokens. With
-- p_partial false a batch that would not be full is not taken. With p_limit 0 it acknowledges p_ack, lets
-- last_seq follow, and takes nothing. p_collector is what mailroom_attach returned to this session. The rows
-- themselves come by mailroom_fetch() in the same statement, or by mailroom_batch_tokens() in one of its own.
--   size         how many tokens the batch holds
--   pending      due tokens that were seen and left: a batch that is not full, or what late ones have displaced
--   last         the id up to which each due token was seen; null with p_limit 0
--   more         another claim at once is worth while
--   acknowledged null without p_ack; false when the batch had been taken over meanwhile
--   p_left_out   which tokens of p_ack were not handed on, as the counts p_expired to p_invalid tell
--   set_aside    a batch that was given up now, after 20 attempts
--   skipped      how many tokens were expired or consumed and have been passed over, as the record says
-- Must be a transaction of its own. Every read comes before the first write, so that the transaction id, the
-- new hole's horizon, is newer than each snapshot that the batch was made from.
--
-- A small claim first looks whether it is the usual one: no hole, no batch in flight but p_ack, and a stretch without a gap
-- that is due from end to end. It then takes five statements in a row and leaves no hole; mailroom_claim_any() does the rest.
-- From 1,000 tokens on, reading a stretch twice where it is not the usual one would cost more than that saves.
CREATE FUNCTION mailroom_claim(p_collector integer, p_queue text, p_limit integer, p_partial boolean,
    p_take_over boolean, p_publish boolean,
    p_ack bigint, p_ack_attempt integer, p_emitted integer, p_expired integer, p_consumed integer,
    p_wrong_status integer, p_invalid integer, p_left_out int8multirange,
    OUT batch bigint, OUT attempt integer, OUT size integer, OUT pending integer, OUT last bigint, OUT more boolean,
    OUT acknowledged boolean, OUT set_aside bigint, OUT skipped integer)
LANGUAGE plpgsql
SET jit = off SET row_security = off SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
    v_usual boolean;
    v_cursor bigint;
    v_top bigint;
    v_due integer;
BEGIN
    pending := 0; more := false; skipped := 0;
    IF pg_current_xact_id_if_assigned() IS NOT NULL OR current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'a claim needs a read committed transaction of its own' USING ERRCODE = 'MR003';
    END IF;
    IF p_collector <> pg_backend_pid() THEN
        RAISE EXCEPTION 'this is another session than the one that attached to the queue'
            USING ERRCODE = 'MR003', HINT = 'a pooler in transaction mode cannot be used: connect to the server itself';
    END IF;
    PERFORM pg_advisory_xact_lock(1835100524, hashtext(p_queue));
    IF p_limit BETWEEN 1 AND 999 THEN
        SELECT b.cursor, (SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM tokens_id_seq),
               b.hole_ids = '{}' AND b.open_from = b.id AND CASE
                   WHEN p_ack IS NULL THEN b.emitted_at IS NOT NULL
                   ELSE b.id = p_ack AND b.attempts = p_ack_attempt AND b.emitted_at IS NULL
               END
        INTO v_cursor, v_top, v_usual FROM mailroom_batches b WHERE b.job_type = p_queue ORDER BY b.id DESC LIMIT 1;
        IF v_usual AND v_cursor <= v_top THEN
            SELECT count(*) FILTER (WHERE t.is_due), coalesce(max(t.id), v_cursor) INTO v_due, last
            FROM (SELECT id, consumed_at IS NULL AND expires_at > floor(extract(epoch FROM clock_timestamp()))::bigint AS is_due
                  FROM tokens WHERE id > v_cursor AND id <= v_top ORDER BY id LIMIT p_limit) t;
        END IF;
    END IF;
    IF (last - v_cursor = v_due) IS NOT TRUE THEN
        SELECT c.* INTO batch, attempt, size, pending, last, more, acknowledged, set_aside, skipped
        FROM mailroom_claim_any(p_queue, p_limit, p_partial, p_take_over, p_publish, p_ack, p_ack_attempt, p_emitted, p_expired,
                                p_consumed, p_wrong_status, p_invalid, p_left_out) c;
        RETURN;
    END IF;
    acknowledged := mailroom_acknowledge(p_ack, p_ack_attempt, p_emitted, p_expired, p_consumed,
                                         p_wrong_status, p_invalid, p_left_out);
    more := v_due = p_limit;
    IF v_due > 0 AND (more OR p_partial) THEN
        batch := nextval('mailroom_batches_id_seq'); attempt := 1; size := v_due;
        INSERT INTO mailroom_batches (id, job_type, ids, collector, cursor, open_from, hole_ids)
        OVERRIDING SYSTEM VALUE
        VALUES (batch, p_queue, int8multirange(int8range(v_cursor, last, '(]')), p_collector, last, batch, '{}');
        v_cursor := last;
    ELSE
        pending := v_due;
    END IF;
    IF p_publish THEN
        PERFORM mailroom_publish_cursor(p_queue, v_cursor);
    END IF;
END
$$;

-- The rest of mailroom_claim, whatever there is; under its lock and its settings.
CREATE FUNCTION mailroom_claim_any(p_queue text, p_limit integer, p_partial boolean, p_take_over boolean, p_publish boolean,
    p_ack bigint, p_ack_attempt integer, p_emitted integer, p_expired integer, p_consumed integer,
    p_wrong_status integer, p_invalid integer, p_left_out int8multirange,
    OUT batch bigint, OUT attempt integer, OUT size integer, OUT pending integer, OUT last bigint, OUT more boolean,
    OUT acknowledged boolean, OUT set_aside bigint, OUT skipped integer)
LANGUAGE plpgsql AS $$
DECLARE
    v_state record;
    v_top bigint;
    v_lease record;
    v_window record;
    v_looks mailroom_hole_look[] := '{}';
    v_late integer := 0;
    v_late_left boolean := false;
    v_batch record;
    v_found int8multirange := '{}';
    v_seen integer;
    v_take boolean;
BEGIN
    pending := 0; more := false; skipped := 0;
    v_state := mailroom_queue_state(p_queue);
    IF p_limit = 0 THEN
        acknowledged := mailroom_acknowledge(p_ack, p_ack_attempt, p_emitted, p_expired, p_consumed,
                                             p_wrong_status, p_invalid, p_left_out);
        PERFORM mailroom_publish_cursor(p_queue, v_state.cursor);
        RETURN;
    END IF;
    SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END INTO v_top FROM tokens_id_seq;
    IF v_top < v_state.cursor THEN
        RAISE EXCEPTION 'the sequence of tokens stands at %, behind the cursor at %', v_top, v_state.cursor
            USING ERRCODE = 'MR002';
    END IF;

    v_lease := mailroom_find_orphan(p_queue, v_state.open_from, p_take_over, p_ack, p_ack_attempt);
    v_window := mailroom_window(v_state.cursor, v_top, CASE WHEN v_lease.orphan IS NULL THEN p_limit ELSE 0 END);
    IF v_state.hole_ids <> '{}' THEN
        SELECT h.looks, h.found_total, h.out_of_budget INTO v_looks, v_late, v_late_left
        FROM mailroom_look_at_holes(v_state.hole_ids, CASE WHEN v_lease.orphan IS NULL
            THEN greatest(p_limit - v_window.due, (p_limit + 1) / 2) ELSE 0 END) h;
    END IF;
    v_seen := v_window.due + v_late;
    IF v_seen > p_limit THEN
        v_window := mailroom_window(v_state.cursor, v_top, p_limit - v_late);
    END IF;

    IF v_late > 0 THEN
        v_found := (SELECT range_agg(g) FROM unnest(v_looks) l, unnest(l.found) g);
    END IF;
    last := CASE WHEN v_late_left THEN upper(v_found) - 1 ELSE v_window.last END;
    acknowledged := mailroom_acknowledge(p_ack, p_ack_attempt, p_emitted, p_expired, p_consumed,
                                         p_wrong_status, p_invalid, p_left_out);
    IF v_lease.exhausted IS NOT NULL THEN
        UPDATE mailroom_batches SET set_aside_at = clock_timestamp() WHERE id = v_lease.exhausted;
        set_aside := v_lease.exhausted;
    END IF;
    IF v_lease.orphan IS NOT NULL THEN
        more := true;
        UPDATE mailroom_batches b
        SET collector = pg_backend_pid(), claimed_by = current_setting('application_name'),
            attempts = b.attempts + 1, claimed_at = clock_timestamp(),
            earlier_attempts = coalesce(b.earlier_attempts, '[]') || jsonb_build_object(
                'attempt', b.attempts, 'collector', b.collector, 'claimed_by', b.claimed_by, 'claimed_at', b.claimed_at)
        WHERE b.id = v_lease.orphan
        RETURNING b.id, b.attempts, (SELECT coalesce(sum(upper(g) - lower(g)), 0) FROM unnest(b.ids) g)
        INTO batch, attempt, size;
        RETURN;
    END IF;

    more := v_seen >= p_limit OR v_window.capped OR v_late_left;
    v_take := more OR p_partial OR v_seen = 0;
    pending := v_seen - CASE WHEN v_take THEN v_window.due + v_late ELSE 0 END;
    IF v_looks <> '{}' THEN
        PERFORM mailroom_settle_holes(v_looks, v_take);
    END IF;
    IF v_take THEN
        v_batch := mailroom_append_batch(p_queue, v_state.cursor, v_state.hole_ids, v_lease.oldest_open, v_window.ids + v_found,
            v_window.seen, v_window.last, v_window.expired, v_window.consumed);
        batch := v_batch.batch; attempt := v_batch.attempt; size := v_window.due + v_late;
        skipped := v_window.expired + v_window.consumed;
        v_state.cursor := v_batch.cursor;
    END IF;
    IF p_publish THEN
        PERFORM mailroom_publish_cursor(p_queue, v_state.cursor);
    END IF;
END
$$;

-- Appends the next row of a queue: a lease on p_ids, or, when all that was read was passed over, a record of
-- that (batch is null then). Ids up to p_last that were not seen become a hole. Nothing at all if there is
-- nothing to record.
CREATE FUNCTION mailroom_append_batch(p_queue text, p_cursor bigint, p_hole_ids bigint[], p_oldest_open bigint,
    p_ids int8multirange, p_seen int8multirange, p_last bigint, p_expired integer, p_consumed integer,
    OUT batch bigint, OUT attempt integer, OUT cursor bigint)
LANGUAGE plpgsql AS $$
DECLARE
    v_unseen int8multirange := int8multirange(int8range(p_cursor, p_last, '(]')) - p_seen;
    v_holes bigint[] := p_hole_ids;
    v_hole bigint;
    v_id bigint;
BEGIN
    cursor := p_last;
    IF isempty(p_ids) AND p_last = p_cursor THEN
        RETURN;
    END IF;
    IF NOT isempty(v_unseen) THEN
        INSERT INTO mailroom_holes (ids, horizon) VALUES (v_unseen, pg_current_xact_id()) RETURNING id INTO v_hole;
        v_holes := v_holes || v_hole;
    END IF;
    IF v_holes <> '{}' THEN
        v_holes := mailroom_merge_holes(v_holes);
    END IF;
    v_id := nextval('mailroom_batches_id_seq');
    INSERT INTO mailroom_batches (id, job_type, ids, collector, emitted_at, skipped_expired, skipped_consumed,
                                  cursor, open_from, hole_ids)
    OVERRIDING SYSTEM VALUE
    VALUES (v_id, p_queue, p_ids, pg_backend_pid(), CASE WHEN isempty(p_ids) THEN clock_timestamp() END,
            p_expired, p_consumed, p_last, least(p_oldest_open, v_id), v_holes);
    IF NOT isempty(p_ids) THEN
        batch := v_id;
        attempt := 1;
    END IF;
END
$$;

-- The oldest mailroom that may work on this schema, by the newest version that it knows. A migration that breaks
-- what older ones do replaces this function; they read it though they know nothing of that migration. A function,
-- since every role may call it, and since it comes and goes with the migration whichever tool runs that.
CREATE FUNCTION mailroom_minimum_client() RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN 6;

DO $$
DECLARE
    v_function regprocedure;
BEGIN
    FOR v_function IN
        SELECT oid FROM pg_proc
        WHERE pronamespace = quote_ident(current_schema())::regnamespace AND proname LIKE 'mailroom\_%'
          AND proname NOT IN ('mailroom_token_state', 'mailroom_random_code', 'mailroom_minimum_client',
                          'mailroom_batch_tokens', 'mailroom_idle_cursor')
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', v_function, current_schema());
    END LOOP;
END
$$;
