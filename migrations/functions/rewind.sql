-- Moves the cursor back or forward, and emits single tokens again.
--
-- Each takes the queue's advisory lock, as a claim does, so collectors need not stop. Custom SQLSTATEs: MR003 as for a
-- claim, MR004 a target that the sequence has not reached, MR005 more tokens than the caller allows.

-- Moves the cursor to p_target. Tokens above the target are emitted, even if they were emitted before. A move back
-- removes ids above the target from open batches and gaps, because the next claims read them again. A move forward
-- skips the tokens between permanently. Deferred tokens above the target are emitted by the cursor, and no longer by
-- their time; those below it stay deferred. Raises MR005 if more than p_max_replay due tokens would be replayed.
-- replayed = the due tokens between the target and the old cursor at this moment.
CREATE OR REPLACE FUNCTION mailroom_rewind(p_queue text, p_target bigint, p_max_replay bigint, p_details jsonb,
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
    SELECT d.id INTO v_top FROM mailroom_last_drawn_token() d;
    IF p_target < 0 OR p_target > v_top THEN
        RAISE EXCEPTION 'the cursor cannot be set to %: the newest token drawn is %', p_target, v_top
            USING ERRCODE = 'MR004';
    END IF;
    SELECT count(*) INTO replayed
    FROM (SELECT mailroom_queue_actions(p_queue) AS actions OFFSET 0) q, tokens t LEFT JOIN accounts a ON a.id = t.account
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
    SET state = 'cancelled', not_before = NULL, unknowns = 0, last_at = clock_timestamp(), sink = NULL,
        address = NULL, code = NULL, reply = 'the cursor was moved: it emits the token'
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
-- above the cursor or in a gap, which will be emitted anyway, and those of an action that the queue does not take.
-- Returns how many it added. A horizon of 0 means that no transaction can show more ids, so a claim deletes the gap
-- after reading it.
CREATE OR REPLACE FUNCTION mailroom_replay(p_queue text, p_tokens bigint[], p_details jsonb) RETURNS bigint
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
