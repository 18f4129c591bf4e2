-- Deletes old tokens, messages, batches and deliveries, some of them a call. The caller calls again with what it reached.
--
-- Each reads rows in id order, after p_after and up to p_last, until it has found p_limit old rows or has read p_rows.
-- Old is what ended before p_before (seconds since 1970). One statement finds them, so it sees a queue's cursor, gaps
-- and open batches in one snapshot. It needs no queue lock: old tokens are never due, so a concurrent claim, rewind or
-- replay only has fewer tokens to skip. The rows are then deleted unless another session has locked or changed them.
--   old_rows how many old rows it found
--   removed  how many of them it deleted; all with p_dry_run, which deletes none
--   referred how many it left as foreign keys of the application refuse it, and referred_by what these are
--   reached  the id after which to go on; null at the end: also after p_rows rows, all of which came within the time that is
--            kept. Rows above them are hardly older, and become old no later than these.

-- Returns the state of each queue, as mailroom_queue_state() does, but in the snapshot of the whole statement.
CREATE OR REPLACE FUNCTION mailroom_queue_states() RETURNS TABLE (queue text, cursor bigint, open_from bigint, gap_ids bigint[])
LANGUAGE sql STABLE AS $$
    SELECT j.job_type, coalesce(b.cursor, j.last_seq, 0), coalesce(b.open_from, 1), coalesce(b.gap_ids, '{}')
    FROM jobs j LEFT JOIN LATERAL (
        SELECT * FROM mailroom_batches WHERE mailroom_batches.queue = j.job_type ORDER BY id DESC LIMIT 1) b ON true
$$;

-- Returns which tokens stay, however old: those above last, which is p_last_token or the lowest cursor, and held, which
-- are in a gap or an open batch. Multiranges are unnested because PostgreSQL 14 cannot aggregate them.
CREATE OR REPLACE FUNCTION mailroom_prune_bounds(p_last_token bigint) RETURNS TABLE (last bigint, held int8multirange)
LANGUAGE sql STABLE AS $$
    WITH queues AS MATERIALIZED (SELECT * FROM mailroom_queue_states())
    SELECT (SELECT least(min(q.cursor), p_last_token) FROM queues q), (
        SELECT coalesce(range_agg(x.g), '{}') FROM (
            SELECT unnest(h.ids) FROM queues q JOIN mailroom_gaps h ON h.id = ANY (q.gap_ids)
            UNION ALL
            SELECT unnest(mailroom_batch_ids(b.ids, b.ids_mask))
            FROM queues q JOIN mailroom_batches b ON b.queue = q.queue AND b.id >= q.open_from
            WHERE b.emitted_at IS NULL AND b.dead_at IS NULL) x (g))
$$;

-- True if a token ended before p_before: it was consumed or else expired.
CREATE OR REPLACE FUNCTION mailroom_token_is_old(p_consumed_at bigint, p_expires_at bigint, p_before bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(p_consumed_at, p_expires_at) < p_before;

-- True if a token may be deleted: it is old, and p_last and p_held of mailroom_prune_bounds() do not keep it. Inlined.
CREATE OR REPLACE FUNCTION mailroom_is_prunable(p_id bigint, p_consumed_at bigint, p_expires_at bigint, p_before bigint,
    p_last bigint, p_held int8multirange) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN mailroom_token_is_old(p_consumed_at, p_expires_at, p_before) AND p_id <= p_last AND NOT p_held @> p_id;

-- Deletes rows of a table by their ids, but for those that a foreign key of another table keeps: one row that somebody refers to
-- does not keep the others. kept_by: such a key and its table, null if there is none.
CREATE OR REPLACE FUNCTION mailroom_delete_rows(p_table text, p_ids bigint[], OUT removed integer, OUT kept bigint[], OUT kept_by text)
LANGUAGE plpgsql AS $$
DECLARE
    v_id bigint;
    v_table text;
    v_key text;
BEGIN
    removed := 0; kept := '{}';
    IF p_ids = '{}' THEN
        RETURN;
    END IF;
    BEGIN
        EXECUTE format('DELETE FROM %I WHERE id = ANY ($1)', p_table) USING p_ids;
        GET DIAGNOSTICS removed = ROW_COUNT;
        RETURN;
    EXCEPTION WHEN foreign_key_violation OR restrict_violation THEN
    END;
    FOREACH v_id IN ARRAY p_ids LOOP
        BEGIN
            EXECUTE format('DELETE FROM %I WHERE id = $1', p_table) USING v_id;
            removed := removed + 1;
        EXCEPTION WHEN foreign_key_violation OR restrict_violation THEN
            GET STACKED DIAGNOSTICS v_table = TABLE_NAME, v_key = CONSTRAINT_NAME;
            kept := kept || v_id; kept_by := format('%s of table %s', v_key, v_table);
        END;
    END LOOP;
END
$$;

-- Locks rows that are old and deletes them: p_ids of p_table, unless another session has locked them, or p_condition on the row k is
-- not true any more. A deferred key is checked at once.
CREATE OR REPLACE FUNCTION mailroom_delete_old(p_table text, p_ids bigint[], p_condition text, p_before bigint,
    OUT removed integer, OUT referred integer, OUT referred_by text) LANGUAGE plpgsql AS $$
DECLARE
    v_ids bigint[];
BEGIN
    EXECUTE format('SELECT ARRAY(SELECT k.id FROM unnest($1) o (id) JOIN %I k ON k.id = o.id WHERE %s FOR UPDATE OF k SKIP LOCKED)',
                   p_table, p_condition) INTO v_ids USING p_ids, p_before;
    SET CONSTRAINTS ALL IMMEDIATE;
    SELECT d.removed, cardinality(d.kept), d.kept_by INTO removed, referred, referred_by FROM mailroom_delete_rows(p_table, v_ids) d;
END
$$;

-- Deletes tokens that are old, not above a cursor, and in no gap and no open batch.
CREATE OR REPLACE FUNCTION mailroom_prune_tokens(p_after bigint, p_last bigint, p_last_token bigint, p_before bigint,
    p_rows integer, p_limit integer, p_dry_run boolean, OUT old_rows integer, OUT removed integer, OUT reached bigint,
    OUT referred integer, OUT referred_by text)
LANGUAGE plpgsql AS $$
DECLARE
    v_old bigint[];
BEGIN
    WITH bounds AS MATERIALIZED (SELECT * FROM mailroom_prune_bounds(p_last_token)),
    looked AS MATERIALIZED (
        SELECT t.id, mailroom_is_prunable(t.id, t.consumed_at, t.expires_at, p_before, (SELECT last FROM bounds), (SELECT held FROM bounds)) AS is_old,
               t.created_at >= p_before AS is_new
        FROM tokens t WHERE t.id > p_after AND t.id <= p_last ORDER BY t.id LIMIT p_rows),
    old AS MATERIALIZED (SELECT id FROM looked WHERE is_old LIMIT p_limit)
    SELECT coalesce(array_agg(o.id), '{}'), CASE WHEN count(*) = p_limit THEN max(o.id) ELSE (
        SELECT CASE WHEN count(*) < p_rows OR NOT bool_and(l.is_new) THEN max(l.id) END FROM looked l) END
    INTO v_old, reached FROM old o;
    old_rows := cardinality(v_old); removed := old_rows;
    IF NOT p_dry_run THEN
        SELECT d.removed, d.referred, d.referred_by INTO removed, referred, referred_by
        FROM mailroom_delete_old('tokens', v_old, 'mailroom_token_is_old(k.consumed_at, k.expires_at, $2)', p_before) d;
    END IF;
END
$$;

-- Deletes batches that are old, not the newest of a queue that still exists, and have no token left (with p_dry_run:
-- would have none), so that every remaining token keeps the record of its emission.
CREATE OR REPLACE FUNCTION mailroom_prune_batches(p_after bigint, p_last bigint, p_last_token bigint, p_before bigint,
    p_rows integer, p_limit integer, p_dry_run boolean, OUT old_rows integer, OUT removed integer, OUT reached bigint,
    OUT referred integer, OUT referred_by text)
LANGUAGE plpgsql AS $$
DECLARE
    v_old bigint[];
BEGIN
    WITH bounds AS MATERIALIZED (SELECT * FROM mailroom_prune_bounds(p_last_token)),
    looked AS MATERIALIZED (
        SELECT b.id, b.queue, mailroom_batch_ids(b.ids, b.ids_mask) AS ids,
               greatest(b.emitted_at, b.dead_at) < to_timestamp(p_before) AS is_old,
               b.claimed_at >= to_timestamp(p_before) AS is_new
        FROM mailroom_batches b WHERE b.id > p_after AND b.id <= p_last ORDER BY b.id LIMIT p_rows),
    old AS MATERIALIZED (
        SELECT l.id FROM looked l
        WHERE l.is_old
          AND (EXISTS (SELECT FROM mailroom_batches n WHERE n.queue = l.queue AND n.id > l.id)
               OR NOT EXISTS (SELECT FROM jobs j WHERE j.job_type = l.queue))
          AND NOT EXISTS (
              SELECT FROM unnest(l.ids) u (g), LATERAL (
                  SELECT FROM tokens t
                  WHERE t.id >= lower(u.g) AND t.id < upper(u.g)
                    AND NOT (p_dry_run AND mailroom_is_prunable(t.id, t.consumed_at, t.expires_at, p_before,
                                                                (SELECT last FROM bounds), (SELECT held FROM bounds)))
                  LIMIT 1) t)
        LIMIT p_limit)
    SELECT coalesce(array_agg(o.id), '{}'), CASE WHEN count(*) = p_limit THEN max(o.id) ELSE (
        SELECT CASE WHEN count(*) < p_rows OR NOT bool_and(l.is_new) THEN max(l.id) END FROM looked l) END
    INTO v_old, reached FROM old o;
    old_rows := cardinality(v_old); removed := old_rows;
    IF NOT p_dry_run THEN
        SELECT d.removed, d.referred, d.referred_by INTO removed, referred, referred_by
        FROM mailroom_delete_old('mailroom_batches', v_old, 'greatest(k.emitted_at, k.dead_at) < to_timestamp($2)', p_before) d;
    END IF;
END
$$;

-- Deletes deliveries of a queue that are old, do not wait for another attempt, and whose token is gone (with p_dry_run:
-- would be). p_after, p_last and reached are ids of tokens.
CREATE OR REPLACE FUNCTION mailroom_prune_deliveries(p_queue text, p_after bigint, p_last bigint, p_last_token bigint,
    p_before bigint, p_rows integer, p_limit integer, p_dry_run boolean, OUT old_rows integer, OUT removed integer, OUT reached bigint)
LANGUAGE plpgsql AS $$
DECLARE
    v_old bigint[];
BEGIN
    WITH bounds AS MATERIALIZED (SELECT * FROM mailroom_prune_bounds(p_last_token)),
    looked AS MATERIALIZED (
        SELECT d.token AS id, d.not_before IS NULL AND d.last_at < to_timestamp(p_before) AND NOT EXISTS (
                   SELECT FROM tokens t
                   WHERE t.id = d.token
                     AND NOT (p_dry_run AND mailroom_is_prunable(t.id, t.consumed_at, t.expires_at, p_before,
                                                                 (SELECT last FROM bounds), (SELECT held FROM bounds)))) AS is_old,
               d.last_at >= to_timestamp(p_before) AS is_new
        FROM mailroom_deliveries d
        WHERE d.queue = p_queue AND d.token > p_after AND d.token <= p_last ORDER BY d.token LIMIT p_rows),
    old AS MATERIALIZED (SELECT id FROM looked WHERE is_old LIMIT p_limit)
    SELECT coalesce(array_agg(o.id), '{}'), CASE WHEN count(*) = p_limit THEN max(o.id) ELSE (
        SELECT CASE WHEN count(*) < p_rows OR NOT bool_and(l.is_new) THEN max(l.id) END FROM looked l) END
    INTO v_old, reached FROM old o;
    old_rows := cardinality(v_old); removed := old_rows;
    IF NOT p_dry_run THEN
        DELETE FROM mailroom_deliveries d USING (
            SELECT k.token FROM unnest(v_old) o (id) JOIN mailroom_deliveries k ON k.queue = p_queue AND k.token = o.id
            WHERE k.not_before IS NULL AND k.last_at < to_timestamp(p_before) FOR UPDATE OF k SKIP LOCKED) l
        WHERE d.queue = p_queue AND d.token = l.token;
        GET DIAGNOSTICS removed = ROW_COUNT;
    END IF;
END
$$;

-- Deletes messages that are old and can make no mail any more: they have no token left (with p_dry_run: would have none), and
-- are not scheduled. Those that were cancelled or replaced before their time never had one.
CREATE OR REPLACE FUNCTION mailroom_prune_messages(p_after bigint, p_last bigint, p_last_token bigint, p_before bigint,
    p_rows integer, p_limit integer, p_dry_run boolean, OUT old_rows integer, OUT removed integer, OUT reached bigint,
    OUT referred integer, OUT referred_by text)
LANGUAGE plpgsql AS $$
DECLARE
    v_old bigint[];
BEGIN
    WITH bounds AS MATERIALIZED (SELECT * FROM mailroom_prune_bounds(p_last_token)),
    looked AS MATERIALIZED (
        SELECT m.id, m.send_after, coalesce(m.replaced_at, m.cancelled_at, greatest(m.send_after, m.created_at)) < to_timestamp(p_before) AS is_old,
               m.created_at >= to_timestamp(p_before) AS is_new
        FROM mailroom_messages m WHERE m.id > p_after AND m.id <= p_last ORDER BY m.id LIMIT p_rows),
    old AS MATERIALIZED (
        SELECT l.id FROM looked l
        WHERE l.is_old
          AND NOT EXISTS (SELECT FROM mailroom_schedule s WHERE s.send_after = l.send_after AND s.message = l.id)
          AND NOT EXISTS (
              SELECT FROM tokens t
              WHERE t.message = l.id
                AND NOT (p_dry_run AND mailroom_is_prunable(t.id, t.consumed_at, t.expires_at, p_before,
                                                            (SELECT last FROM bounds), (SELECT held FROM bounds))))
        LIMIT p_limit)
    SELECT coalesce(array_agg(o.id), '{}'), CASE WHEN count(*) = p_limit THEN max(o.id) ELSE (
        SELECT CASE WHEN count(*) < p_rows OR NOT bool_and(l.is_new) THEN max(l.id) END FROM looked l) END
    INTO v_old, reached FROM old o;
    old_rows := cardinality(v_old); removed := old_rows;
    IF NOT p_dry_run THEN
        SELECT d.removed, d.referred, d.referred_by INTO removed, referred, referred_by
        FROM mailroom_delete_old('mailroom_messages', v_old, 'true', p_before) d;
    END IF;
END
$$;
