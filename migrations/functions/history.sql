-- What a queue has emitted: the batches of tokens, missed tokens, ids that were used again.

-- Returns the ids in p_within that acknowledged batches emitted, for tokens created at p_created_at or later (seconds
-- since 1970; allows one hour of clock difference). Older batch records may have been pruned. A batch does not count
-- for a token that was created after its claim: the id belonged to another token then.
CREATE OR REPLACE FUNCTION mailroom_emitted_ids(p_queue text, p_created_at bigint, p_within int8range)
RETURNS int8multirange LANGUAGE sql STABLE AS $$
    SELECT coalesce(range_agg(g), '{}')
    FROM mailroom_batches b,
         LATERAL (SELECT mailroom_batch_ids(b.ids, b.ids_mask) * int8multirange(p_within) AS ids) held,
         LATERAL (SELECT range_agg(int8range(t.id, t.id, '[]')) AS ids FROM tokens t
                  WHERE t.id >= lower(held.ids) AND t.id < upper(held.ids)
                    AND t.created_at > extract(epoch FROM b.claimed_at)) later,
         unnest(held.ids - coalesce(later.ids, '{}')) g
    WHERE b.queue = p_queue AND b.emitted_at IS NOT NULL
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
CREATE OR REPLACE FUNCTION mailroom_missed_tokens(p_queue text) RETURNS SETOF bigint LANGUAGE sql STABLE AS $$
    WITH last AS MATERIALIZED (
        SELECT s.cursor, s.gap_ids, mailroom_queue_actions(p_queue) AS actions, s.cursor > q.id AS is_behind, floor(extract(epoch FROM b.claimed_at)) AS second, b.written,
               -- A bigint, as the index has; no time is infinite then.
               floor(greatest(least(extract(epoch FROM clock_timestamp()) - 3600, extract(epoch FROM b.claimed_at) - 1), 0))::bigint AS since
        FROM mailroom_queue_state(p_queue) s,
             mailroom_last_drawn_token() q,
             (SELECT claimed_at, xmin AS written FROM mailroom_batches
              WHERE queue = p_queue ORDER BY id DESC LIMIT 1) b),
    made AS MATERIALIZED (
        SELECT t.id, to_timestamp(least(t.created_at, 253402300800) + CASE
                   WHEN l.is_behind AND t.created_at = l.second AND age(t.xmin) < age(l.written) THEN 1 ELSE 0 END) AS at
        FROM last l, LATERAL (SELECT id, action, created_at, consumed_at, xmin FROM tokens WHERE created_at >= l.since OFFSET 0) t
        WHERE t.id <= l.cursor AND t.consumed_at IS NULL AND mailroom_takes(l.actions, t.action)
          AND NOT EXISTS (SELECT FROM mailroom_gaps h WHERE h.id = ANY (l.gap_ids) AND h.ids @> t.id)),
    steps AS MATERIALIZED (
        (SELECT b.cursor, b.claimed_at AS at FROM mailroom_batches b, last l
         WHERE b.queue = p_queue AND b.claimed_at < to_timestamp(l.since) ORDER BY b.id DESC LIMIT 1)
        UNION ALL
        SELECT b.cursor, b.claimed_at FROM mailroom_batches b, last l
        WHERE b.queue = p_queue AND b.claimed_at >= to_timestamp(l.since)),
    reached AS (
        SELECT id, at, max(cursor) OVER (ORDER BY at, id NULLS LAST ROWS UNBOUNDED PRECEDING) AS cursor
        FROM (SELECT NULL::bigint AS id, at, cursor FROM steps UNION ALL SELECT id, at, NULL FROM made) moments)
    SELECT r.id FROM reached r
    WHERE r.id <= r.cursor AND NOT EXISTS (
        SELECT FROM mailroom_batches b WHERE b.queue = p_queue AND b.claimed_at >= r.at AND b.ids @> r.id
          AND mailroom_batch_ids(b.ids, b.ids_mask) @> r.id)
$$;

-- Returns the first id from which on no row lies before what is searched, by bisection: about twenty probes of an index. Null if
-- the table is empty. p_of says of what: batches first leased at p_at, those of a queue whose cursor reached p_token, or
-- messages created at p_at. PL/pgSQL caches the plans, so that looking up thousands of tokens in a session costs no planning.
CREATE OR REPLACE FUNCTION mailroom_bisect(p_of text, p_at timestamptz, p_queue text, p_token bigint) RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_low bigint;
    v_middle bigint;
    v_high bigint;
    v_id bigint;
    v_is_before boolean;
BEGIN
    IF p_of = 'messages' THEN
        -- Whoever inserts a message may give it any id.
        SELECT min(m.id), least(max(m.id), 9223372036854775806) + 1 INTO v_low, v_high FROM mailroom_messages m;
    ELSE
        SELECT min(b.id), max(b.id) + 1 INTO v_low, v_high FROM mailroom_batches b;
    END IF;
    WHILE v_low < v_high LOOP
        v_middle := CASE WHEN v_low > -4611686018427387904 AND v_high < 4611686018427387904 THEN (v_low + v_high) / 2
                         ELSE least(v_low / 2 + v_high / 2, v_high - 1) END;
        CASE p_of
            WHEN 'batches' THEN
                SELECT b.id, b.claimed_at < p_at INTO v_id, v_is_before FROM mailroom_batches b
                WHERE b.id >= v_middle AND b.attempts = 1 ORDER BY b.id LIMIT 1;
            WHEN 'cursors' THEN
                SELECT b.id, b.cursor < p_token INTO v_id, v_is_before FROM mailroom_batches b
                WHERE b.queue = p_queue AND b.id >= v_middle ORDER BY b.id LIMIT 1;
            WHEN 'messages' THEN
                SELECT m.id, m.created_at < p_at INTO v_id, v_is_before FROM mailroom_messages m
                WHERE m.id >= v_middle ORDER BY m.id LIMIT 1;
        END CASE;
        IF v_is_before THEN
            v_low := least(v_id, 9223372036854775806) + 1;
        ELSE
            v_high := v_middle;
        END IF;
    END LOOP;
    RETURN v_low;
END
$$;

-- Returns the id that a batch first leased at p_at would have; null if there is no batch. Ids follow the first lease,
-- but claimed_at is the time of the last lease, so this probes only batches with one attempt.
CREATE OR REPLACE FUNCTION mailroom_first_batch_since(p_at timestamptz) RETURNS bigint LANGUAGE sql STABLE
RETURN mailroom_bisect('batches', p_at, NULL, NULL);

-- Returns the first batch of a queue whose cursor is at or above p_token; null if there is none. After a rewind this is
-- one of several. Searches by ids only, so that no clock and no changed expiry hides the batch.
CREATE OR REPLACE FUNCTION mailroom_batch_reaching(p_queue text, p_token bigint) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_low bigint := mailroom_bisect('cursors', NULL, p_queue, p_token);
BEGIN
    RETURN (SELECT b.id FROM mailroom_batches b WHERE b.queue = p_queue AND b.id >= v_low ORDER BY b.id LIMIT 1);
END
$$;

-- Returns the batches that hold one of p_tokens: those first leased between p_since and p_until, and for each queue the
-- batch whose cursor reached the token. A batch may be returned twice.
CREATE OR REPLACE FUNCTION mailroom_batches_of(p_tokens bigint[], p_since timestamptz, p_until timestamptz)
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
CREATE OR REPLACE FUNCTION mailroom_id_reuses(OUT highest bigint, OUT reused_until timestamptz) RETURNS SETOF record
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
        SELECT (o.details->'sequence_before')::bigint, o.at FROM mailroom_operations o
        WHERE CASE jsonb_typeof(o.details->'sequence_before') WHEN 'number' THEN
            (o.details->'sequence_before')::numeric BETWEEN 0 AND 9223372036854775807 END
        UNION ALL
        SELECT s.id, 'infinity'::timestamptz
        FROM mailroom_last_drawn_token() s
        WHERE s.id < (SELECT max(q.cursor) FROM jobs j, LATERAL mailroom_queue_state(j.job_type) q);
END
$$;
