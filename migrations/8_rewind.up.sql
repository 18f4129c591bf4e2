-- Moves the cursor back or forward, emits single tokens again, and finds the batches of tokens.
--
-- New functions; locks nothing. At run time each takes the queue's advisory lock, as a claim does, so collectors need
-- not stop. Custom SQLSTATEs: MR003 as for a claim, MR004 a target that the sequence has not reached, MR005 more
-- tokens than the caller allows.

-- Records an operation, with the actor and the reason that the transaction has set.
CREATE FUNCTION mailroom_record_operation(p_kind text, p_queue text, p_details jsonb) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO mailroom_operations (kind, queue, details, actor, reason)
    VALUES (p_kind, p_queue, p_details,
            coalesce(nullif(current_setting('mailroom.actor', true), ''),
                     nullif(current_setting('application_name'), ''), session_user),
            nullif(current_setting('mailroom.reason', true), ''))
$$;

-- Takes the queue's lock and returns the queue's state. It locks in a separate statement, so that the next statement
-- sees what the last claim did.
CREATE FUNCTION mailroom_lock_queue(p_queue text, OUT cursor bigint, OUT open_from bigint, OUT gap_ids bigint[])
LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'a rewind needs a read committed transaction' USING ERRCODE = 'MR003';
    END IF;
    PERFORM pg_advisory_xact_lock(mailroom_lock_class('queue'), hashtext(p_queue));
    SELECT s.cursor, s.open_from, s.gap_ids INTO cursor, open_from, gap_ids FROM mailroom_queue_state(p_queue) s;
END
$$;

-- Returns the ids in p_within that acknowledged batches emitted, for tokens created at p_created_at or later (seconds
-- since 1970; allows one hour of clock difference). Older batch records may have been pruned. A batch does not count
-- for a token that was created after its claim: the id belonged to another token then.
CREATE FUNCTION mailroom_emitted_ids(p_queue text, p_created_at bigint, p_within int8range)
RETURNS int8multirange LANGUAGE sql STABLE AS $$
    SELECT coalesce(range_agg(g), '{}')
    FROM mailroom_batches b,
         LATERAL (SELECT mailroom_batch_ids(b.ids, b.ids_mask) * int8multirange(p_within) AS ids) held,
         LATERAL (SELECT range_agg(int8range(t.id, t.id, '[]')) AS ids FROM tokens t
                  WHERE t.id >= lower(held.ids) AND t.id < upper(held.ids)
                    AND t.created_at > extract(epoch FROM b.claimed_at)) later,
         unnest(held.ids - coalesce(later.ids, '{}')) g
    WHERE b.job_type = p_queue AND b.emitted_at IS NOT NULL
      AND b.claimed_at >= to_timestamp(greatest(least(p_created_at, 253402300800), 0)) - interval '1 hour'
      AND b.ids && p_within
$$;

-- Returns the tokens that a queue has missed: its cursor had passed their ids before they were created, and no batch
-- has held them since. Ids repeat after tokens is truncated or restored, or its sequence is set back. Reads only
-- unconsumed tokens that were created in the last hour or since the last claim.
--
-- Creation times have whole seconds. While the sequence is behind the cursor, a token created in the second of the
-- last claim counts as missed if its row was written after the batch's row: restored tokens of that second are
-- emitted again.
CREATE FUNCTION mailroom_missed_tokens(p_queue text) RETURNS SETOF bigint LANGUAGE sql STABLE AS $$
    WITH last AS MATERIALIZED (
        SELECT s.cursor, s.gap_ids, mailroom_queue_actions(p_queue) AS actions, s.cursor > q.drawn AS is_behind, floor(extract(epoch FROM b.claimed_at)) AS second, b.written,
               -- A bigint, as the index has; no time is infinite then.
               floor(greatest(least(extract(epoch FROM clock_timestamp()) - 3600, extract(epoch FROM b.claimed_at) - 1), 0))::bigint AS since
        FROM mailroom_queue_state(p_queue) s,
             (SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END AS drawn FROM tokens_id_seq) q,
             (SELECT claimed_at, xmin AS written FROM mailroom_batches
              WHERE job_type = p_queue ORDER BY id DESC LIMIT 1) b),
    made AS MATERIALIZED (
        SELECT t.id, to_timestamp(least(t.created_at, 253402300800) + CASE
                   WHEN l.is_behind AND t.created_at = l.second AND age(t.xmin) < age(l.written) THEN 1 ELSE 0 END) AS at
        FROM last l, LATERAL (SELECT id, action, created_at, consumed_at, xmin FROM tokens WHERE created_at >= l.since OFFSET 0) t
        WHERE t.id <= l.cursor AND t.consumed_at IS NULL AND mailroom_takes(l.actions, t.action)
          AND NOT EXISTS (SELECT FROM mailroom_gaps h WHERE h.id = ANY (l.gap_ids) AND h.ids @> t.id)),
    steps AS MATERIALIZED (
        (SELECT b.cursor, b.claimed_at AS at FROM mailroom_batches b, last l
         WHERE b.job_type = p_queue AND b.claimed_at < to_timestamp(l.since) ORDER BY b.id DESC LIMIT 1)
        UNION ALL
        SELECT b.cursor, b.claimed_at FROM mailroom_batches b, last l
        WHERE b.job_type = p_queue AND b.claimed_at >= to_timestamp(l.since)),
    reached AS (
        SELECT id, at, max(cursor) OVER (ORDER BY at, id NULLS LAST ROWS UNBOUNDED PRECEDING) AS cursor
        FROM (SELECT NULL::bigint AS id, at, cursor FROM steps UNION ALL SELECT id, at, NULL FROM made) moments)
    SELECT r.id FROM reached r
    WHERE r.id <= r.cursor AND NOT EXISTS (
        SELECT FROM mailroom_batches b WHERE b.job_type = p_queue AND b.claimed_at >= r.at AND b.ids @> r.id
          AND mailroom_batch_ids(b.ids, b.ids_mask) @> r.id)
$$;

-- The functions below find batches by bisection, about twenty index probes each. PL/pgSQL caches their plans, so that
-- looking up thousands of tokens in a session costs no planning.

-- Returns the id that a batch first leased at p_at would have; null if there is no batch. Ids follow the first lease,
-- but claimed_at is the time of the last lease, so this probes only batches with one attempt.
CREATE FUNCTION mailroom_first_batch_since(p_at timestamptz) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_low bigint;
    v_high bigint;
    v_id bigint;
    v_is_before boolean;
BEGIN
    SELECT min(id), max(id) + 1 INTO v_low, v_high FROM mailroom_batches;
    WHILE v_low < v_high LOOP
        SELECT b.id, b.claimed_at < p_at INTO v_id, v_is_before FROM mailroom_batches b
        WHERE b.id >= (v_low + v_high) / 2 AND b.attempts = 1 ORDER BY b.id LIMIT 1;
        IF v_is_before THEN
            v_low := v_id + 1;
        ELSE
            v_high := (v_low + v_high) / 2;
        END IF;
    END LOOP;
    RETURN v_low;
END
$$;

-- Returns the first batch of a queue whose cursor is at or above p_token; null if there is none. After a rewind this is
-- one of several. Searches by ids only, so that no clock and no changed expiry hides the batch.
CREATE FUNCTION mailroom_batch_reaching(p_queue text, p_token bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_low bigint;
    v_high bigint;
    v_id bigint;
    v_is_before boolean;
BEGIN
    SELECT min(id), max(id) + 1 INTO v_low, v_high FROM mailroom_batches;
    WHILE v_low < v_high LOOP
        SELECT b.id, b.cursor < p_token INTO v_id, v_is_before FROM mailroom_batches b
        WHERE b.job_type = p_queue AND b.id >= (v_low + v_high) / 2 ORDER BY b.id LIMIT 1;
        IF v_is_before THEN
            v_low := v_id + 1;
        ELSE
            v_high := (v_low + v_high) / 2;
        END IF;
    END LOOP;
    SELECT b.id INTO v_id FROM mailroom_batches b WHERE b.job_type = p_queue AND b.id >= v_low ORDER BY b.id LIMIT 1;
    RETURN v_id;
END
$$;

-- Returns the batches that hold one of p_tokens: those first leased between p_since and p_until, and for each queue the
-- batch whose cursor reached the token. A batch may be returned twice.
CREATE FUNCTION mailroom_batches_of(p_tokens bigint[], p_since timestamptz, p_until timestamptz)
RETURNS SETOF bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_queue text;
    v_token bigint;
    v_from bigint := mailroom_first_batch_since(p_since);
    v_to bigint := mailroom_first_batch_since(p_until);
    v_ids int8multirange := (SELECT range_agg(int8range(t, t, '[]')) FROM unnest(p_tokens) t);
    v_id bigint;
BEGIN
    FOR v_queue, v_token IN SELECT j.job_type, t FROM jobs j, unnest(p_tokens) t LOOP
        v_id := mailroom_batch_reaching(v_queue, v_token);
        RETURN QUERY SELECT b.id FROM mailroom_batches b 
            WHERE b.id = v_id AND (b.ids @> v_token AND mailroom_batch_ids(b.ids, b.ids_mask) @> v_token OR b.skipped_ids @> v_token);
    END LOOP;
    -- Batches before the next one with one attempt may have been first leased within the time too.
    SELECT b.id INTO v_to FROM mailroom_batches b WHERE b.attempts = 1 AND b.id >= v_to ORDER BY b.id LIMIT 1;
    RETURN QUERY SELECT b.id FROM mailroom_batches b
        WHERE b.id >= v_from AND b.id < coalesce(v_to, 9223372036854775807)
          AND (b.ids && v_ids AND mailroom_batch_ids(b.ids, b.ids_mask) && v_ids OR b.skipped_ids && v_ids);
END
$$;

-- Returns when ids were drawn again: ids up to highest, by batches claimed before reused_until. The last row, without
-- an end, is a sequence that is behind a cursor now.
CREATE FUNCTION mailroom_id_reuses(OUT highest bigint, OUT reused_until timestamptz) RETURNS SETOF record
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
        SELECT (o.details->'sequence_before')::bigint, o.at FROM mailroom_operations o
        WHERE CASE jsonb_typeof(o.details->'sequence_before') WHEN 'number' THEN
            (o.details->'sequence_before')::numeric BETWEEN 0 AND 9223372036854775807 END
        UNION ALL
        SELECT s.drawn, 'infinity'::timestamptz
        FROM (SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END AS drawn FROM tokens_id_seq) s
        WHERE s.drawn < (SELECT max(q.cursor) FROM jobs j, LATERAL mailroom_queue_state(j.job_type) q);
END
$$;

-- Removes p_cut from every open batch. An empty batch stays open, so that its collector can still acknowledge it.
-- Returns the removed ids of each batch: [{"batch": 7, "ids": "{[12,15)}"}, ...].
CREATE FUNCTION mailroom_cut_open_batches(p_queue text, p_open_from bigint, p_cut int8multirange) RETURNS jsonb
LANGUAGE sql AS $$
    WITH cut AS (
        UPDATE mailroom_batches b SET ids = mailroom_batch_ids(b.ids, b.ids_mask) - p_cut, ids_mask = NULL
        FROM (SELECT o.id, e.ids * p_cut AS ids
              FROM mailroom_batches o, LATERAL (SELECT mailroom_batch_ids(o.ids, o.ids_mask) AS ids) e
              WHERE o.job_type = p_queue AND o.id >= p_open_from AND o.emitted_at IS NULL
                AND o.dead_at IS NULL AND e.ids && p_cut) taken
        WHERE b.id = taken.id
        RETURNING b.id, taken.ids)
    SELECT coalesce(jsonb_agg(jsonb_build_object('batch', cut.id, 'ids', cut.ids::text) ORDER BY cut.id), '[]') FROM cut
$$;

-- Appends a row that leases nothing to a queue. Later batches emit p_resent again.
CREATE FUNCTION mailroom_append_state(p_queue text, p_cursor bigint, p_open_from bigint, p_gap_ids bigint[],
                                      p_resent int8multirange DEFAULT NULL)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_newest bigint := (SELECT max(b.id) FROM mailroom_batches b);
    v_id bigint;
BEGIN
    INSERT INTO mailroom_batches (job_type, ids, collector, emitted_at, cursor, open_from, gap_ids, resent)
    VALUES (p_queue, '{}', pg_backend_pid(), clock_timestamp(), p_cursor, p_open_from, p_gap_ids, p_resent)
    RETURNING id INTO v_id;
    PERFORM mailroom_require_newer('mailroom_batches', v_id, v_newest);
    PERFORM mailroom_publish_cursor(p_queue, p_cursor);
END
$$;

-- Moves the cursor to p_target. Tokens above the target are emitted, even if they were emitted before. A move back
-- removes ids above the target from open batches and gaps, because the next claims read them again. A move forward
-- skips the tokens between permanently. Deferred tokens above the target are emitted by the cursor, and no longer by
-- their time; those below it stay deferred. Raises MR005 if more than p_max_replay due tokens would be replayed. replayed
-- = the due tokens between the target and the old cursor at this moment.
CREATE FUNCTION mailroom_rewind(p_queue text, p_target bigint, p_max_replay bigint, p_details jsonb,
    OUT cursor_before bigint, OUT replayed bigint)
LANGUAGE plpgsql AS $$
DECLARE
    v_state record;
    v_top bigint;
    v_now bigint := floor(extract(epoch FROM clock_timestamp()));
    v_beyond int8multirange := int8multirange(int8range(p_target, NULL, '(]'));
    v_cut jsonb;
BEGIN
    v_state := mailroom_lock_queue(p_queue);
    cursor_before := v_state.cursor;
    SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END INTO v_top FROM tokens_id_seq;
    IF p_target < 0 OR p_target > v_top THEN
        RAISE EXCEPTION 'the cursor cannot be set to %: the newest token drawn is %', p_target, v_top
            USING ERRCODE = 'MR004';
    END IF;
    SELECT count(*) INTO replayed
    FROM (SELECT mailroom_queue_actions(p_queue) AS actions OFFSET 0) q, tokens t JOIN accounts a ON a.id = t.account
    WHERE t.id > p_target AND t.id <= v_state.cursor AND mailroom_takes(q.actions, t.action)
      AND mailroom_token_state(t.action, t.consumed_at, t.expires_at, a.status, v_now) = 'due';
    IF replayed > p_max_replay THEN
        RAISE EXCEPTION 'this would emit % tokens, but at most % are allowed', replayed, p_max_replay
            USING ERRCODE = 'MR005';
    END IF;
    v_cut := mailroom_cut_open_batches(p_queue, v_state.open_from, v_beyond);
    UPDATE mailroom_gaps SET ids = ids - v_beyond WHERE id = ANY (v_state.gap_ids) AND ids && v_beyond;
    DELETE FROM mailroom_gaps WHERE id = ANY (v_state.gap_ids) AND isempty(ids);
    UPDATE mailroom_deliveries d
    SET state = 'cancelled', not_before = NULL, unknowns = 0, last_at = clock_timestamp(), sink = NULL, code = NULL,
        reply = 'the cursor was moved: it emits the token', earlier_attempts = mailroom_outcomes_so_far(d)
    WHERE d.queue = p_queue AND d.token > p_target AND d.state = 'deferred';
    UPDATE mailroom_deliveries d SET unknowns = 0 WHERE d.queue = p_queue AND d.token > p_target AND d.unknowns > 0;
    PERFORM mailroom_append_state(p_queue, p_target, v_state.open_from,
        ARRAY(SELECT h.id FROM mailroom_gaps h WHERE h.id = ANY (v_state.gap_ids) ORDER BY h.id),
        CASE WHEN p_target < cursor_before THEN int8multirange(int8range(p_target, cursor_before, '(]')) END);
    PERFORM mailroom_record_operation('rewind', p_queue, jsonb_build_object(
        'cursor_before', cursor_before, 'cursor_after', p_target, 'replayed', replayed, 'cut', v_cut)
        || CASE WHEN v_top < cursor_before THEN jsonb_build_object('sequence_before', v_top) ELSE '{}' END || p_details);
END
$$;

-- Emits p_tokens again without moving the cursor: it adds their ids to gaps, which the next claims read. Ignores tokens
-- above the cursor or in a gap, which will be emitted anyway, and those of an action that the queue does not take. Returns how many it added. A horizon of 0 means that no
-- transaction can show more ids, so a claim deletes the gap after reading it.
CREATE FUNCTION mailroom_replay(p_queue text, p_tokens bigint[], p_details jsonb) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_state record;
    v_ids int8multirange;
    v_waiting int8multirange;
    v_cut jsonb;
    v_newest bigint := mailroom_newest_gap();
    v_gaps bigint[];
    v_replayed bigint;
BEGIN
    v_state := mailroom_lock_queue(p_queue);
    SELECT coalesce(range_agg(int8range(t.id, t.id, '[]')), '{}') INTO v_ids
    FROM (SELECT mailroom_queue_actions(p_queue) AS actions OFFSET 0) q, unnest(p_tokens) x LEFT JOIN tokens t ON t.id = x
    WHERE x <= v_state.cursor AND mailroom_takes(q.actions, t.action);
    SELECT coalesce(range_agg(g), '{}') INTO v_waiting
    FROM mailroom_gaps h, unnest(h.ids) g WHERE h.id = ANY (v_state.gap_ids);
    v_ids := v_ids - v_waiting;
    SELECT coalesce(sum(upper(g) - lower(g)), 0) INTO v_replayed FROM unnest(v_ids) g;
    IF v_replayed = 0 THEN
        RETURN 0;
    END IF;
    v_cut := mailroom_cut_open_batches(p_queue, v_state.open_from, v_ids);
    UPDATE mailroom_deliveries d SET not_before = NULL, unknowns = 0
    WHERE d.queue = p_queue AND d.token = ANY (p_tokens) AND d.token <@ v_ids AND (d.not_before IS NOT NULL OR d.unknowns > 0);
    -- Several gaps of moderate size, because a claim that takes ids from a gap rewrites the gap.
    WITH parts AS (
        SELECT range_agg(g.g) AS ids FROM unnest(v_ids) WITH ORDINALITY AS g (g, n) GROUP BY g.n / 500),
    made AS (
        INSERT INTO mailroom_gaps (ids, horizon) SELECT ids, '0' FROM parts RETURNING id)
    SELECT array_agg(id ORDER BY id) INTO v_gaps FROM made;
    PERFORM mailroom_require_newer('mailroom_gaps', v_gaps[1], v_newest);
    PERFORM mailroom_append_state(p_queue, v_state.cursor, v_state.open_from, v_state.gap_ids || v_gaps, v_ids);
    PERFORM mailroom_record_operation('replay', p_queue, jsonb_build_object(
        'cursor', v_state.cursor, 'replayed', v_replayed, 'ids', v_ids::text, 'cut', v_cut) || p_details);
    RETURN v_replayed;
END
$$;

DO $$
DECLARE
    v_function text;
BEGIN
    FOREACH v_function IN ARRAY ARRAY[
        'mailroom_record_operation(text, text, jsonb)', 'mailroom_emitted_ids(text, bigint, int8range)',
        'mailroom_missed_tokens(text)', 'mailroom_lock_queue(text)',
        'mailroom_cut_open_batches(text, bigint, int8multirange)',
        'mailroom_append_state(text, bigint, bigint, bigint[], int8multirange)', 'mailroom_rewind(text, bigint, bigint, jsonb)',
        'mailroom_replay(text, bigint[], jsonb)', 'mailroom_first_batch_since(timestamptz)',
        'mailroom_batch_reaching(text, bigint)', 'mailroom_batches_of(bigint[], timestamptz, timestamptz)',
        'mailroom_id_reuses()'
    ]
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', v_function, current_schema());
    END LOOP;
END
$$;
