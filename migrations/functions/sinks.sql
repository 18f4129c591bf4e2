-- What consumers tell each other of their sinks.

-- Records what a consumer has learned about its sinks, and notifies p_channel if one has become unavailable or
-- available. p_news: an array of objects with name, failures (0: it works), since, failed_at, probe_at (in seconds
-- since 1970), reason, and learnt (JSON as a text; null: it refuses nothing). Older news does not replace newer. Returns
-- those of p_names that are unavailable, or refuse something. With
-- p_probe, a sink whose probe_at has come is the caller's to try, and nobody else's for p_probe; its probe_at is
-- returned as it was.
CREATE OR REPLACE FUNCTION mailroom_share_sinks(p_channel text, p_news jsonb, p_names text[], p_probe interval)
RETURNS SETOF mailroom_sinks LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_changed boolean := false;
    r record;
BEGIN
    FOR r IN
        SELECT n.name, n.failures, to_timestamp(n.since) AS since, to_timestamp(n.failed_at) AS failed_at,
               to_timestamp(n.probe_at) AS probe_at, n.reason, n.learnt
        FROM jsonb_to_recordset(p_news) n (name text, failures integer, since double precision, failed_at double precision,
                                           probe_at double precision, reason text, learnt text)
        ORDER BY n.name
    LOOP
        IF r.failures = 0 AND r.learnt IS NULL THEN
            DELETE FROM mailroom_sinks s WHERE s.name = r.name;
            v_changed := v_changed OR FOUND;
        ELSE
            v_changed := v_changed OR NOT EXISTS (
                SELECT FROM mailroom_sinks s
                WHERE s.name = r.name AND (s.failures > 0) = (r.failures > 0) AND s.learnt::text IS NOT DISTINCT FROM r.learnt);
            INSERT INTO mailroom_sinks AS s (name, failures, since, failed_at, probe_at, reason, learnt)
            VALUES (r.name, r.failures, r.since, r.failed_at, r.probe_at, r.reason, r.learnt::json)
            ON CONFLICT (name) DO UPDATE
            SET failures = excluded.failures, since = CASE WHEN s.failures > 0 THEN s.since ELSE excluded.since END,
                failed_at = excluded.failed_at, probe_at = excluded.probe_at, reason = excluded.reason, learnt = excluded.learnt
            WHERE s.failed_at <= excluded.failed_at;
        END IF;
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
