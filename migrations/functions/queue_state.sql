-- The state of a queue: its newest row, and the rows that are appended to it.

-- Returns the actions that a queue takes; null for all.
CREATE OR REPLACE FUNCTION mailroom_queue_actions(p_queue text) RETURNS token_action[] LANGUAGE sql STABLE
RETURN (SELECT q.actions FROM mailroom_queues q WHERE q.name = p_queue);

-- Returns the newest row of a queue, or the start that jobs names. Raises MR001 for a queue that is unknown or was
-- dropped.
CREATE OR REPLACE FUNCTION mailroom_queue_state(p_queue text, OUT cursor bigint, OUT open_from bigint, OUT gap_ids bigint[])
LANGUAGE plpgsql AS $$
BEGIN
    SELECT b.cursor, b.open_from, b.gap_ids INTO cursor, open_from, gap_ids
    FROM mailroom_batches b WHERE b.queue = p_queue ORDER BY b.id DESC LIMIT 1;
    IF NOT FOUND THEN
        SELECT coalesce(j.last_seq, 0), 1, '{}' INTO cursor, open_from, gap_ids FROM jobs j WHERE j.job_type = p_queue;
    END IF;
    IF NOT FOUND OR EXISTS (SELECT FROM mailroom_queues q WHERE q.name = p_queue AND q.dropped_at IS NOT NULL) THEN
        RAISE EXCEPTION 'unknown queue "%"', p_queue USING ERRCODE = 'MR001';
    END IF;
END
$$;

-- Takes the queue's lock and returns the queue's state. It locks in a separate statement, so that the next statement
-- sees what the last claim did.
CREATE OR REPLACE FUNCTION mailroom_lock_queue(p_queue text, OUT cursor bigint, OUT open_from bigint, OUT gap_ids bigint[])
LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'a rewind needs a read committed transaction' USING ERRCODE = 'MR003';
    END IF;
    PERFORM pg_advisory_xact_lock(mailroom_lock_class('queue'), hashtext(p_queue));
    SELECT s.cursor, s.open_from, s.gap_ids INTO cursor, open_from, gap_ids FROM mailroom_queue_state(p_queue) s;
END
$$;

-- Copies the cursor to jobs.last_seq, for people and scripts that read it. No decision depends on it, so a locked row
-- is updated next time.
CREATE OR REPLACE FUNCTION mailroom_publish_cursor(p_queue text, p_cursor bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM jobs WHERE job_type = p_queue AND last_seq IS DISTINCT FROM p_cursor FOR UPDATE SKIP LOCKED;
    IF FOUND THEN
        UPDATE jobs SET last_seq = p_cursor WHERE job_type = p_queue;
    END IF;
END
$$;

-- Raises MR002 if p_id, which was drawn for a row of p_table, is not above p_newest, the highest id before it was
-- drawn: the sequence is behind its table, as after a switch-over to a logical replica. The row would not be the newest
-- one, and the next claim would take the same tokens again. A sequence only grows, so rows of other transactions cause
-- no error.
CREATE OR REPLACE FUNCTION mailroom_require_newer(p_table text, p_id bigint, p_newest bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF p_id <= p_newest THEN
        RAISE EXCEPTION '%_id_seq is at %, behind the newest id of %, %', p_table, p_id, p_table, p_newest
            USING ERRCODE = 'MR002',
                  HINT = 'run mailroom rewind-cursor --fix-sequence, which sets every sequence of mailroom ahead of its table';
    END IF;
END
$$;

-- Appends a row that leases nothing to a queue. Later batches emit p_resent again.
CREATE OR REPLACE FUNCTION mailroom_append_state(p_queue text, p_cursor bigint, p_open_from bigint, p_gap_ids bigint[],
                                      p_resent int8multirange DEFAULT NULL)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_newest bigint := (SELECT max(b.id) FROM mailroom_batches b);
    v_id bigint;
BEGIN
    INSERT INTO mailroom_batches (queue, ids, collector, emitted_at, cursor, open_from, gap_ids, resent)
    VALUES (p_queue, '{}', pg_backend_pid(), clock_timestamp(), p_cursor, p_open_from, p_gap_ids, p_resent)
    RETURNING id INTO v_id;
    PERFORM mailroom_require_newer('mailroom_batches', v_id, v_newest);
    PERFORM mailroom_publish_cursor(p_queue, p_cursor);
END
$$;

-- Removes p_cut from every open batch. An empty batch stays open, so that its collector can still acknowledge it.
-- Returns the removed ids of each batch: [{"batch": 7, "ids": "{[12,15)}"}, ...].
CREATE OR REPLACE FUNCTION mailroom_cut_open_batches(p_queue text, p_open_from bigint, p_cut int8multirange) RETURNS jsonb
LANGUAGE sql AS $$
    WITH cut AS (
        UPDATE mailroom_batches b SET ids = mailroom_batch_ids(b.ids, b.ids_mask) - p_cut, ids_mask = NULL
        FROM (SELECT o.id, e.ids * p_cut AS ids
              FROM mailroom_batches o, LATERAL (SELECT mailroom_batch_ids(o.ids, o.ids_mask) AS ids) e
              WHERE o.queue = p_queue AND o.id >= p_open_from AND o.emitted_at IS NULL
                AND o.dead_at IS NULL AND e.ids && p_cut) taken
        WHERE b.id = taken.id
        RETURNING b.id, taken.ids)
    SELECT coalesce(jsonb_agg(jsonb_build_object('batch', cut.id, 'ids', cut.ids::text) ORDER BY cut.id), '[]') FROM cut
$$;
