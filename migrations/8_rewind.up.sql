-- Replays: the cursor moved back or forward, or single tokens handed on again.
--
-- New functions; locks nothing. At run time each takes the queue's advisory lock, as a claim does, so that
-- collectors go on before and after. SQLSTATEs of our own: MR003 as for a claim, MR004 a target that the
-- sequence has not reached, MR005 more tokens than the caller allows.

-- Records what was done, with the actor and the reason that the transaction has set.
CREATE FUNCTION mailroom_record_operation(p_kind text, p_queue text, p_details jsonb) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO mailroom_operations (kind, queue, details, actor, reason)
    VALUES (p_kind, p_queue, p_details,
            coalesce(nullif(current_setting('mailroom.actor', true), ''),
                     nullif(current_setting('application_name'), ''), session_user),
            nullif(current_setting('mailroom.reason', true), ''))
$$;

-- Takes the queue's lock, in a statement of its own so that the caller's next one sees what the last claim did,
-- and returns the queue's state.
CREATE FUNCTION mailroom_lock_queue(p_queue text, OUT cursor bigint, OUT open_from bigint, OUT hole_ids bigint[])
LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'a rewind needs a read committed transaction' USING ERRCODE = 'MR003';
    END IF;
    PERFORM pg_advisory_xact_lock(1835100524, hashtext(p_queue));
    SELECT s.cursor, s.open_from, s.hole_ids INTO cursor, open_from, hole_ids FROM mailroom_queue_state(p_queue) s;
END
$$;

-- Which of the ids in p_within were emitted by acknowledged batches, for tokens that were created at p_created_at or
-- later (seconds since 1970; with an hour's grace for clocks). Older batch records may have been pruned. A token that
-- was made after a batch was claimed was not in it: the id was another token's.
CREATE FUNCTION mailroom_emitted_ids(p_queue text, p_created_at bigint, p_within int8range)
RETURNS int8multirange LANGUAGE sql STABLE AS $$
    SELECT coalesce(range_agg(g), '{}')
    FROM mailroom_batches b,
         LATERAL (SELECT b.ids * int8multirange(p_within) AS ids) held,
         LATERAL (SELECT range_agg(int8range(t.id, t.id, '[]')) AS ids FROM tokens t
                  WHERE t.id >= lower(held.ids) AND t.id < upper(held.ids)
                    AND t.created_at > extract(epoch FROM b.claimed_at)) later,
         unnest(held.ids - coalesce(later.ids, '{}')) g
    WHERE b.job_type = p_queue AND b.emitted_at IS NOT NULL
      AND b.claimed_at >= to_timestamp(greatest(least(p_created_at, 253402300800), 0)) - interval '1 hour'
      AND b.ids && p_within
$$;

-- The tokens that a queue has missed: its cursor had passed their ids before they were made, and no batch has held them
-- since. Ids come again when tokens are truncated or restored, or their sequence is set back. Only tokens
-- that were made in the last hour, or since the last claim, and not consumed are looked at.
--
-- A token keeps whole seconds. Of the second of the last claim those are missed whose row was written after that of the
-- batch, while the sequence stands behind the cursor: what was restored of this one second is emitted once more.
CREATE FUNCTION mailroom_missed_tokens(p_queue text) RETURNS SETOF bigint LANGUAGE sql STABLE AS $$
    WITH last AS MATERIALIZED (
        SELECT s.cursor, s.hole_ids, s.cursor > q.drawn AS is_behind, floor(extract(epoch FROM b.claimed_at)) AS second, b.written,
               least(extract(epoch FROM clock_timestamp()) - 3600, extract(epoch FROM b.claimed_at) - 1) AS since
        FROM mailroom_queue_state(p_queue) s,
             (SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END AS drawn FROM tokens_id_seq) q,
             (SELECT claimed_at, xmin AS written FROM mailroom_batches
              WHERE job_type = p_queue ORDER BY id DESC LIMIT 1) b),
    made AS MATERIALIZED (
        SELECT t.id, to_timestamp(least(t.created_at, 253402300800) + CASE
                   WHEN l.is_behind AND t.created_at = l.second AND age(t.xmin) < age(l.written) THEN 1 ELSE 0 END) AS at
        FROM tokens t, last l
        WHERE t.id <= l.cursor AND t.created_at >= l.since AND t.consumed_at IS NULL
          AND NOT EXISTS (SELECT FROM mailroom_holes h WHERE h.id = ANY (l.hole_ids) AND h.ids @> t.id)),
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
        SELECT FROM mailroom_batches b WHERE b.job_type = p_queue AND b.claimed_at >= r.at AND b.ids @> r.id)
$$;

-- Takes p_cut out of every open batch; one that becomes empty stays open, so that its collector's
-- acknowledgement still finds it. Returns what was taken out of which: [{"batch": 7, "ids": "{[12,15)}"}, …].
CREATE FUNCTION mailroom_cut_open_batches(p_queue text, p_open_from bigint, p_cut int8multirange) RETURNS jsonb
LANGUAGE sql AS $$
    WITH cut AS (
        UPDATE mailroom_batches b SET ids = b.ids - p_cut
        FROM (SELECT o.id, o.ids * p_cut AS ids FROM mailroom_batches o
              WHERE o.job_type = p_queue AND o.id >= p_open_from AND o.emitted_at IS NULL
                AND o.set_aside_at IS NULL AND o.ids && p_cut) taken
        WHERE b.id = taken.id
        RETURNING b.id, taken.ids)
    SELECT coalesce(jsonb_agg(jsonb_build_object('batch', cut.id, 'ids', cut.ids::text) ORDER BY cut.id), '[]') FROM cut
$$;

-- The next row of a queue, which leases nothing.
CREATE FUNCTION mailroom_append_state(p_queue text, p_cursor bigint, p_open_from bigint, p_hole_ids bigint[])
RETURNS void LANGUAGE sql AS $$
    INSERT INTO mailroom_batches (job_type, ids, collector, emitted_at, cursor, open_from, hole_ids)
    VALUES (p_queue, '{}', pg_backend_pid(), clock_timestamp(), p_cursor, p_open_from, p_hole_ids);
    SELECT mailroom_publish_cursor(p_queue, p_cursor);
$$;

-- Moves the cursor to p_target: ids above it are handed on, again if they were before. Back, it cuts open
-- batches and holes to what lies at or below the target, since the window will meet the rest anew. Forward, it
-- passes by what lies between, for good: the caller's decision. Refuses to replay more than p_max_replay due
-- tokens. replayed = the due tokens between, at this moment.
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
    SELECT count(*) INTO replayed FROM tokens t JOIN accounts a ON a.id = t.account
    WHERE t.id > p_target AND t.id <= v_state.cursor
      AND mailroom_token_state(t.action, t.consumed_at, t.expires_at, a.status, v_now) = 'due';
    IF replayed > p_max_replay THEN
        RAISE EXCEPTION 'this would hand on % tokens, and no more than % are allowed', replayed, p_max_replay
            USING ERRCODE = 'MR005';
    END IF;
    v_cut := mailroom_cut_open_batches(p_queue, v_state.open_from, v_beyond);
    UPDATE mailroom_holes SET ids = ids - v_beyond WHERE id = ANY (v_state.hole_ids) AND ids && v_beyond;
    DELETE FROM mailroom_holes WHERE id = ANY (v_state.hole_ids) AND isempty(ids);
    PERFORM mailroom_append_state(p_queue, p_target, v_state.open_from,
        ARRAY(SELECT h.id FROM mailroom_holes h WHERE h.id = ANY (v_state.hole_ids) ORDER BY h.id));
    PERFORM mailroom_record_operation('rewind', p_queue, jsonb_build_object(
        'cursor_before', cursor_before, 'cursor_after', p_target, 'replayed', replayed, 'cut', v_cut)
        || CASE WHEN v_top < cursor_before THEN jsonb_build_object('sequence_before', v_top) ELSE '{}' END || p_details);
END
$$;

-- Hands on p_tokens again, without moving the cursor: they are put where the claim looks for ids that it has
-- passed and that came to light late. Those above the cursor, or in a hole already, come of themselves.
-- A horizon of 0 says that no transaction can show more of them, so the hole is forgotten once it was read.
CREATE FUNCTION mailroom_replay(p_queue text, p_tokens bigint[], p_details jsonb) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_state record;
    v_ids int8multirange;
    v_waiting int8multirange;
    v_cut jsonb;
    v_holes bigint[];
    v_replayed bigint;
BEGIN
    v_state := mailroom_lock_queue(p_queue);
    SELECT coalesce(range_agg(int8range(x, x, '[]')), '{}') INTO v_ids
    FROM unnest(p_tokens) x WHERE x <= v_state.cursor;
    SELECT coalesce(range_agg(g), '{}') INTO v_waiting
    FROM mailroom_holes h, unnest(h.ids) g WHERE h.id = ANY (v_state.hole_ids);
    v_ids := v_ids - v_waiting;
    SELECT coalesce(sum(upper(g) - lower(g)), 0) INTO v_replayed FROM unnest(v_ids) g;
    IF v_replayed = 0 THEN
        RETURN 0;
    END IF;
    v_cut := mailroom_cut_open_batches(p_queue, v_state.open_from, v_ids);
    -- Several holes of moderate size: each is rewritten as often as a batch is taken from it.
    WITH parts AS (
        SELECT range_agg(g.g) AS ids FROM unnest(v_ids) WITH ORDINALITY AS g (g, n) GROUP BY g.n / 500),
    made AS (
        INSERT INTO mailroom_holes (ids, horizon) SELECT ids, '0' FROM parts RETURNING id)
    SELECT array_agg(id ORDER BY id) INTO v_holes FROM made;
    PERFORM mailroom_append_state(p_queue, v_state.cursor, v_state.open_from, v_state.hole_ids || v_holes);
    PERFORM mailroom_record_operation('replay', p_queue, jsonb_build_object(
        'cursor', v_state.cursor, 'replayed', v_replayed, 'ids', v_ids::text, 'cut', v_cut) || p_details);
    RETURN v_replayed;
END
$$;

DO $$
DECLARE
    v_function regprocedure;
BEGIN
    FOR v_function IN
        SELECT oid FROM pg_proc
        WHERE pronamespace = quote_ident(current_schema())::regnamespace
          AND proname IN ('mailroom_record_operation', 'mailroom_emitted_ids', 'mailroom_missed_tokens', 'mailroom_lock_queue',
                          'mailroom_cut_open_batches', 'mailroom_append_state', 'mailroom_rewind', 'mailroom_replay')
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', v_function, current_schema());
    END LOOP;
END
$$;
