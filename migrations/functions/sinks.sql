-- What consumers tell each other of their sinks.

-- Records what a consumer has learned about its sinks, and notifies p_channel if one has become unavailable or
-- available. p_news: an array of objects with name, failures (0: it works), since, failed_at, probe_at (in seconds
-- since 1970), reason, and learnt and seen (JSON as texts; null: it refuses nothing). Older news does not replace newer,
-- and of what is learnt, only what differs from what was seen. Returns those of p_names that are unavailable, or refuse
-- something. With
-- p_probe, a sink whose probe_at has come is the caller's to try, and nobody else's for p_probe; its probe_at is
-- returned as it was.
CREATE OR REPLACE FUNCTION mailroom_share_sinks(p_channel text, p_news jsonb, p_names text[], p_probe interval)
RETURNS SETOF mailroom_sinks LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_changed boolean := false;
    v_before text;
    v_after text;
    r record;
BEGIN
    FOR r IN
        SELECT n.name, n.failures, to_timestamp(n.since) AS since, to_timestamp(n.failed_at) AS failed_at,
               to_timestamp(n.probe_at) AS probe_at, n.reason, n.learnt::jsonb AS learnt, n.seen::jsonb AS seen
        FROM jsonb_to_recordset(p_news) n (name text, failures integer, since double precision, failed_at double precision,
                                           probe_at double precision, reason text, learnt text, seen text)
        ORDER BY n.name
    LOOP
        v_before := (SELECT concat(s.failures > 0, s.learnt) FROM mailroom_sinks s WHERE s.name = r.name FOR UPDATE);
        INSERT INTO mailroom_sinks AS s (name, failures, since, failed_at, probe_at, reason)
        VALUES (r.name, r.failures, r.since, r.failed_at, r.probe_at, r.reason)
        ON CONFLICT (name) DO UPDATE
        SET failures = excluded.failures, since = CASE WHEN s.failures > 0 THEN s.since ELSE excluded.since END,
            failed_at = excluded.failed_at, probe_at = excluded.probe_at, reason = excluded.reason
        WHERE s.failed_at <= excluded.failed_at;
        UPDATE mailroom_sinks s SET learnt = mailroom_merged_learnt(s.learnt::jsonb, r.seen, r.learnt) WHERE s.name = r.name
        RETURNING concat(s.failures > 0, s.learnt) INTO v_after;
        v_changed := v_changed OR coalesce(v_before, 'f') <> v_after;
        DELETE FROM mailroom_sinks s WHERE s.name = r.name AND s.failures = 0 AND s.learnt IS NULL;
    END LOOP;
    IF v_changed THEN
        PERFORM pg_notify(p_channel, 'sinks');
    END IF;
    RETURN QUERY
        SELECT s.* FROM mailroom_sinks s
        WHERE s.name = ANY (p_names) AND (p_probe IS NULL OR s.failures = 0 OR s.probe_at > v_now);
    RETURN QUERY
        WITH old AS MATERIALIZED (
            SELECT s.* FROM mailroom_sinks s
            WHERE s.name = ANY (p_names) AND p_probe IS NOT NULL AND s.failures > 0 AND s.probe_at <= v_now ORDER BY s.name FOR UPDATE),
        taken AS (UPDATE mailroom_sinks s SET probe_at = v_now + p_probe FROM old WHERE s.name = old.name)
        SELECT * FROM old;
END
$$;

-- Returns what is known of a sink after a consumer has changed p_seen to p_learnt, while others may have changed p_stored: each of
-- their entries stays, and what both count is added up. An object with arrays of objects, which have a key or a domain;
-- null: nothing.
CREATE OR REPLACE FUNCTION mailroom_merged_learnt(p_stored jsonb, p_seen jsonb, p_learnt jsonb) RETURNS json LANGUAGE sql IMMUTABLE AS $$
    WITH entry AS (
        SELECT n.version, l.key AS list, coalesce(v->>'key', v->>'domain') AS name, v
        FROM (VALUES (1, p_stored), (2, p_seen), (3, p_learnt)) n (version, lists), jsonb_each(n.lists) l, jsonb_array_elements(l.value) v),
    change AS (
        SELECT e.list, e.name, (array_agg(e.v) FILTER (WHERE e.version = 1))[1] AS stored,
               (array_agg(e.v) FILTER (WHERE e.version = 2))[1] AS seen, (array_agg(e.v) FILTER (WHERE e.version = 3))[1] AS learnt
        FROM entry e GROUP BY e.list, e.name),
    merged AS (
        SELECT c.list, c.name, CASE
            WHEN c.learnt IS NOT DISTINCT FROM c.seen THEN c.stored
            WHEN c.learnt IS NULL OR c.stored IS NULL THEN c.learnt
            ELSE c.stored || coalesce((
                SELECT jsonb_object_agg(f.key, CASE
                    WHEN f.key = 'in_row' AND f.value > coalesce(c.seen->'in_row', '0')
                    THEN to_jsonb((c.stored->>'in_row')::integer + (f.value #>> '{}')::integer - coalesce((c.seen->>'in_row')::integer, 0))
                    ELSE f.value END)
                FROM jsonb_each(c.learnt) f WHERE f.value IS DISTINCT FROM c.seen->f.key), '{}') END AS v
        FROM change c),
    list AS (
        SELECT m.list, jsonb_agg(m.v ORDER BY m.name COLLATE "C") AS entries FROM merged m WHERE m.v IS NOT NULL GROUP BY m.list)
    SELECT jsonb_object_agg(l.list, l.entries)::json FROM list l
$$;
