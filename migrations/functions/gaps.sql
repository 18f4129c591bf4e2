-- Gaps: ids at or below the cursor that no snapshot has shown yet.

-- Returns the highest id that a gap has, or had as long as the newest row of a queue lists it: an id that is used again
-- would make the gap of one queue that of another.
CREATE OR REPLACE FUNCTION mailroom_newest_gap() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT greatest(
        (SELECT max(h.id) FROM mailroom_gaps h),
        (SELECT max(g.g) FROM jobs j, LATERAL (
             SELECT b.gap_ids FROM mailroom_batches b WHERE b.queue = j.job_type ORDER BY b.id DESC LIMIT 1) s,
         unnest(s.gap_ids) g (g)))
$$;

-- Merges gaps of one size class that wait for the same transactions, so that each range is rewritten only O(log n)
-- times. Returns the remaining gaps of p_gaps, merged ones included.
CREATE OR REPLACE FUNCTION mailroom_merge_gaps(p_gaps bigint[]) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    v_gaps bigint[] := ARRAY(SELECT h.id FROM mailroom_gaps h WHERE h.id = ANY (p_gaps) ORDER BY h.id);
    v_newest bigint;
    v_merged bigint;
    r record;
BEGIN
    IF cardinality(v_gaps) <= 40 THEN
        RETURN v_gaps;
    END IF;
    FOR r IN
        SELECT array_agg(h.id) AS members, h.pending,
               (array_agg(h.horizon ORDER BY h.horizon DESC))[1] AS horizon
        FROM mailroom_gaps h WHERE h.id = ANY (v_gaps) AND h.pending IS NOT NULL
        GROUP BY h.pending, length(pg_column_size(h.ids)::text) HAVING count(*) >= 10
    LOOP
        v_newest := mailroom_newest_gap();
        INSERT INTO mailroom_gaps (ids, horizon, pending)
        SELECT coalesce(range_agg(g), '{}'), r.horizon, r.pending FROM mailroom_gaps h, unnest(h.ids) g
        WHERE h.id = ANY (r.members)
        RETURNING id INTO v_merged;
        PERFORM mailroom_require_newer('mailroom_gaps', v_merged, v_newest);
        DELETE FROM mailroom_gaps WHERE id = ANY (r.members);
        v_gaps := ARRAY(SELECT x FROM unnest(v_gaps || v_merged) x WHERE x <> ALL (r.members));
    END LOOP;
    RETURN v_gaps;
END
$$;

-- Returns the tokens among p_ids that a transaction in progress has locked or changed, also a prepared one, and one whose
-- savepoint did. Must come before the first write: age() counts from the own transaction id, if there is one.
--
-- xmax has no epoch: a transaction id is at most 2^31 away from the newest one. What sessions share a lock of has an id of
-- another kind there, which may be any number; pg_xact_status() of one that was not given out yet is an error. A transaction
-- that ends meanwhile does no harm: what it has cancelled is skipped by the fetch, which begins later.
CREATE OR REPLACE FUNCTION mailroom_changing_tokens(p_ids int8multirange) RETURNS SETOF bigint LANGUAGE plpgsql AS $$
DECLARE
    v_near bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
BEGIN
    RETURN QUERY
        SELECT t.id FROM unnest(p_ids) u (g), LATERAL (
            SELECT tokens.id, age(tokens.xmax) AS age,
                   v_near - ((v_near - tokens.xmax::text::bigint + 2147483648) & 4294967295) + 2147483648 AS changed_by
            FROM tokens WHERE tokens.id >= lower(u.g) AND tokens.id < upper(u.g) AND tokens.xmax <> '0'
            ORDER BY tokens.id LIMIT 2000000000) t
        WHERE CASE WHEN t.age > 0 AND t.changed_by >= 3 THEN pg_xact_status(t.changed_by::text::xid8) = 'in progress' END;
END
$$;

-- Returns p_gaps with a gap of the ids after p_cursor, up to p_last, that are not in p_seen, and of p_changing; merges gaps.
CREATE OR REPLACE FUNCTION mailroom_open_gap(p_gaps bigint[], p_cursor bigint, p_last bigint, p_seen int8multirange,
                                             p_changing int8multirange)
RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    v_unseen int8multirange := int8multirange(int8range(p_cursor, p_last, '(]')) - p_seen + p_changing;
    v_newest bigint;
    v_gap bigint;
BEGIN
    IF NOT isempty(v_unseen) THEN
        v_newest := mailroom_newest_gap();
        INSERT INTO mailroom_gaps (ids, horizon) VALUES (v_unseen, pg_current_xact_id()) RETURNING id INTO v_gap;
        PERFORM mailroom_require_newer('mailroom_gaps', v_gap, v_newest);
        p_gaps := p_gaps || v_gap;
    END IF;
    RETURN CASE WHEN p_gaps = '{}' THEN p_gaps ELSE mailroom_merge_gaps(p_gaps) END;
END
$$;

-- Returns the visible ids of one gap, of which the queue takes p_budget at most, and the transactions that still run.
-- One statement reads both, so that they belong to one snapshot. A horizon that this cluster has not reached came from
-- another cluster by dump and restore, so none of its transactions runs here. PL/pgSQL caches the plan. At most 10,000
-- tokens of other actions are read at a time.
CREATE OR REPLACE FUNCTION mailroom_check_gap(p_gap bigint, p_budget integer, p_actions token_action[])
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
CREATE OR REPLACE FUNCTION mailroom_check_gaps(p_gaps bigint[], p_budget integer, p_actions token_action[],
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

-- Stores the results of the gap checks. A gap whose visible ids are not taken now stays unchanged. One that has no ids left
-- ends, whatever transactions still run.
CREATE OR REPLACE FUNCTION mailroom_update_gaps(p_checks mailroom_gap_check[], p_taken boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    r mailroom_gap_check;
BEGIN
    FOREACH r IN ARRAY p_checks LOOP
        CONTINUE WHEN NOT p_taken AND NOT isempty(r.found);
        DELETE FROM mailroom_gaps h
        WHERE h.id = r.id AND (r.pending = '{}' AND NOT r.may_hold_more OR h.ids <@ r.found);
        IF NOT FOUND THEN
            UPDATE mailroom_gaps
            SET ids = ids - r.found, pending = CASE WHEN NOT r.may_hold_more THEN r.pending END
            WHERE id = r.id;
        END IF;
    END LOOP;
END
$$;
