-- Leases of consumers whose receiver answers: what is on record before a token may be there.

-- Records for leases of this session (p_batches with p_attempts) that a session with p_sinks has begun: what these may have
-- taken of the batches is not known from here on, and nothing before. Returns the batches that are still leased so: of the others
-- nothing may leave. p_announced, an array as text, is what the next leases of this session begin with: a consumer
-- that works has each claim record that, at no cost.
CREATE OR REPLACE FUNCTION mailroom_begin_leases(p_batches bigint[], p_attempts integer[], p_sinks text[], p_announced text)
RETURNS SETOF bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('mailroom.begun', p_announced, false);
    RETURN QUERY
        UPDATE mailroom_batches b
        SET begun = ARRAY(SELECT DISTINCT s FROM unnest(b.begun || p_sinks) s ORDER BY s)
        FROM unnest(p_batches, p_attempts) l (batch, attempt)
        WHERE b.id = l.batch AND b.attempts = l.attempt AND b.emitted_at IS NULL AND b.dead_at IS NULL
        RETURNING b.id;
END
$$;

-- Gives this session the leases that an earlier session of the same consumer has, if nobody has taken them over. Takes the
-- queue's lock: a claim that has found them abandoned has committed.
CREATE OR REPLACE FUNCTION mailroom_keep_leases(p_queue text, p_batches bigint[], p_attempts integer[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(mailroom_lock_class('queue'), hashtext(p_queue));
    UPDATE mailroom_batches b SET collector = pg_backend_pid()
    FROM unnest(p_batches, p_attempts) l (batch, attempt)
    WHERE b.id = l.batch AND b.attempts = l.attempt AND b.queue = p_queue AND b.emitted_at IS NULL AND b.dead_at IS NULL;
END
$$;
