-- Creates, changes, pauses and drops queues, and changes the budgets that queues share.
--
-- Each takes the advisory lock of its queue, as a claim does, so consumers need not stop; it records the operation and
-- notifies p_channel with the payload 'queues', so that consumers read the definitions again.

-- Returns the definition of a queue as JSON; the defaults for a queue that has no row in mailroom_queues. rate is that
-- of the queue alone; budget is the rate that it shares.
CREATE OR REPLACE FUNCTION mailroom_queue_definition(p_queue text) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'actions', to_jsonb(q.actions), 'priority', coalesce(q.priority, 0),
        'rate', (SELECT jsonb_build_object('tokens', b.tokens, 'milliseconds', (extract(epoch FROM b.period) * 1000)::bigint,
                                           'burst', b.burst)
                 FROM mailroom_budgets b WHERE b.name = p_queue AND b.name = ANY (q.budgets)),
        'budget', (SELECT b FROM unnest(q.budgets) b WHERE b <> p_queue),
        'batch_limit', q.batch_limit, 'batch_timeout', q.batch_timeout)
    FROM (SELECT) one LEFT JOIN mailroom_queues q ON q.name = p_queue AND q.dropped_at IS NULL
$$;

-- Sets the rate of a budget, from now on: what has been taken does not delay tokens by more than a burst at the new
-- rate. Waits for the claims that read it.
CREATE OR REPLACE FUNCTION mailroom_write_budget(p_name text, p_rate jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_tokens integer := (p_rate->>'tokens')::integer;
    v_period interval := (p_rate->>'milliseconds')::bigint * interval '1 ms';
    v_burst integer := (p_rate->>'burst')::integer;
BEGIN
    PERFORM pg_advisory_xact_lock(mailroom_lock_class('budget'), hashtext(p_name));
    INSERT INTO mailroom_budgets AS b (name, tokens, period, burst) VALUES (p_name, v_tokens, v_period, v_burst)
    ON CONFLICT (name) DO UPDATE
    SET tokens = v_tokens, period = v_period, burst = v_burst,
        taken_until = least(b.taken_until, clock_timestamp() + v_period / v_tokens * v_burst);
END
$$;

-- Writes the definition of a queue, as mailroom_queue_definition() returns it. A shared budget must exist.
CREATE OR REPLACE FUNCTION mailroom_write_queue(p_queue text, p_definition jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_budgets text[] := '{}';
    v_shared text := p_definition->>'budget';
BEGIN
    IF jsonb_typeof(p_definition->'rate') = 'object' THEN
        PERFORM mailroom_write_budget(p_queue, p_definition->'rate');
        v_budgets := ARRAY[p_queue];
    END IF;
    IF v_shared IS NOT NULL THEN
        IF NOT EXISTS (SELECT FROM mailroom_budgets b WHERE b.name = v_shared) THEN
            RAISE EXCEPTION 'there is no budget "%"', v_shared USING ERRCODE = 'MR008';
        END IF;
        v_budgets := v_budgets || v_shared;
    END IF;
    INSERT INTO mailroom_queues AS q (name, actions, priority, budgets, batch_limit, batch_timeout)
    SELECT p_queue, d.actions, coalesce(d.priority, 0), v_budgets, d.batch_limit, d.batch_timeout
    FROM jsonb_to_record(p_definition) d (actions token_action[], priority integer, batch_limit text, batch_timeout text)
    ON CONFLICT (name) DO UPDATE
    SET actions = excluded.actions, priority = excluded.priority, budgets = excluded.budgets,
        batch_limit = excluded.batch_limit, batch_timeout = excluded.batch_timeout, dropped_at = NULL;
    PERFORM mailroom_forget_budget(p_queue);
END
$$;

-- Deletes a budget that no queue keeps.
CREATE OR REPLACE FUNCTION mailroom_forget_budget(p_name text) RETURNS void LANGUAGE sql AS $$
    DELETE FROM mailroom_budgets b WHERE b.name = p_name AND NOT EXISTS (
        SELECT FROM mailroom_queues q WHERE q.dropped_at IS NULL AND p_name = ANY (q.budgets))
$$;

-- Creates a queue that emits the tokens above p_cursor; with p_like, those that the queue p_like has not taken yet:
-- above its cursor, and in its gaps. Raises MR007 if it exists, MR001 if p_like is unknown.
CREATE OR REPLACE FUNCTION mailroom_create_queue(p_queue text, p_cursor bigint, p_definition jsonb, p_channel text,
                                      p_like text DEFAULT NULL)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_state record;
    v_cursor bigint := p_cursor;
    v_newest bigint := mailroom_newest_gap();
    v_gaps bigint[] := '{}';
BEGIN
    PERFORM pg_advisory_xact_lock(mailroom_lock_class('queue'), hashtext(p_queue));
    IF p_like IS NOT NULL THEN
        v_state := mailroom_lock_queue(p_like);
        v_cursor := v_state.cursor;
        WITH copied AS (
            INSERT INTO mailroom_gaps (ids, horizon, pending)
            SELECT h.ids, h.horizon, h.pending FROM mailroom_gaps h WHERE h.id = ANY (v_state.gap_ids) RETURNING id)
        SELECT coalesce(array_agg(c.id ORDER BY c.id), '{}') INTO v_gaps FROM copied c;
        PERFORM mailroom_require_newer('mailroom_gaps', v_gaps[1], v_newest);
    END IF;
    INSERT INTO jobs (job_type, last_seq) VALUES (p_queue, v_cursor) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the queue "%" exists', p_queue USING ERRCODE = 'MR007';
    END IF;
    PERFORM mailroom_write_queue(p_queue, p_definition);
    PERFORM mailroom_append_state(p_queue, v_cursor, 1, v_gaps);
    PERFORM mailroom_record_operation('create queue', p_queue, jsonb_build_object(
        'cursor', v_cursor, 'like', p_like, 'after', mailroom_queue_definition(p_queue)));
    PERFORM pg_notify(p_channel, 'queues');
END
$$;

-- Changes the definition of a queue. New actions apply to the tokens above the cursor and in gaps, not to those that a
-- batch holds or that are deferred. Raises MR001 for an unknown queue.
CREATE OR REPLACE FUNCTION mailroom_set_queue(p_queue text, p_definition jsonb, p_channel text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_before jsonb;
BEGIN
    PERFORM mailroom_lock_queue(p_queue);
    v_before := mailroom_queue_definition(p_queue);
    PERFORM mailroom_write_queue(p_queue, p_definition);
    PERFORM mailroom_record_operation('set queue', p_queue, jsonb_build_object(
        'before', v_before, 'after', mailroom_queue_definition(p_queue)));
    PERFORM pg_notify(p_channel, 'queues');
END
$$;

-- Sets the rate that queues share: {tokens, milliseconds, burst}.
CREATE OR REPLACE FUNCTION mailroom_set_budget(p_name text, p_rate jsonb, p_channel text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM mailroom_write_budget(p_name, p_rate);
    PERFORM mailroom_record_operation('set budget', NULL, jsonb_build_object('budget', p_name, 'after', p_rate));
    PERFORM pg_notify(p_channel, 'queues');
END
$$;

-- Pauses a queue, or resumes it. A paused queue gives out no batch; batches that are leased are finished. Returns false
-- if nothing changed. Raises MR001 for an unknown queue.
CREATE OR REPLACE FUNCTION mailroom_pause_queue(p_queue text, p_pause boolean, p_channel text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_actor text := coalesce(nullif(current_setting('mailroom.actor', true), ''),
                             nullif(current_setting('application_name'), ''), session_user);
BEGIN
    PERFORM mailroom_lock_queue(p_queue);
    INSERT INTO mailroom_queues (name) VALUES (p_queue) ON CONFLICT DO NOTHING;
    UPDATE mailroom_queues q
    SET paused_at = CASE WHEN p_pause THEN clock_timestamp() END, paused_by = CASE WHEN p_pause THEN v_actor END,
        pause_reason = CASE WHEN p_pause THEN nullif(current_setting('mailroom.reason', true), '') END
    WHERE q.name = p_queue AND (q.paused_at IS NOT NULL) <> p_pause;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM mailroom_record_operation(CASE WHEN p_pause THEN 'pause queue' ELSE 'resume queue' END, p_queue, '{}');
    PERFORM pg_notify(p_channel, 'queues');
    RETURN true;
END
$$;

-- Drops a queue: its consumers stop, what is due in it is not emitted by it, and its deferred tokens are cancelled. The
-- records of its batches and deliveries stay until they are pruned. Raises MR001 for an unknown queue.
CREATE OR REPLACE FUNCTION mailroom_drop_queue(p_queue text, p_channel text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_state record;
BEGIN
    v_state := mailroom_lock_queue(p_queue);
    PERFORM mailroom_record_operation('drop queue', p_queue, jsonb_build_object(
        'cursor', v_state.cursor, 'before', mailroom_queue_definition(p_queue)));
    UPDATE mailroom_batches b SET dead_at = clock_timestamp()
    WHERE b.queue = p_queue AND b.id >= v_state.open_from AND b.emitted_at IS NULL AND b.dead_at IS NULL;
    UPDATE mailroom_deliveries d
    SET state = 'cancelled', not_before = NULL, last_at = clock_timestamp(), sink = NULL, address = NULL, code = NULL,
        reply = 'the queue was dropped'
    WHERE d.queue = p_queue AND d.not_before IS NOT NULL;
    DELETE FROM mailroom_gaps WHERE id = ANY (v_state.gap_ids);
    DELETE FROM jobs WHERE job_type = p_queue;
    INSERT INTO mailroom_queues AS q (name, dropped_at) VALUES (p_queue, clock_timestamp())
    ON CONFLICT (name) DO UPDATE
    SET dropped_at = clock_timestamp(), budgets = '{}', paused_at = NULL, paused_by = NULL, pause_reason = NULL;
    PERFORM mailroom_forget_budget(p_queue);
    PERFORM pg_notify(p_channel, 'queues');
END
$$;
