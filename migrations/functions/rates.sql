-- Rates: what the budgets of a queue allow.

-- What the budgets of a queue allow now, by the generic cell rate algorithm (ITU-T I.371): allowed = how many tokens
-- may be taken, burst = how many at most at once, wait = seconds until p_needed tokens may be (or the burst, if that is
-- less). Holds the advisory lock (mailroom_lock_class('budget'), hashtext(budget)) of each until the transaction ends.
-- A row lock would give the transaction an id before the claim's reads. Takes the locks in the order of the names, and
-- reads in a separate statement, which sees what the last holders of the locks have taken.
CREATE OR REPLACE FUNCTION mailroom_allowance(p_budgets text[], p_needed integer,
    OUT allowed integer, OUT burst integer, OUT wait double precision)
LANGUAGE plpgsql AS $$
DECLARE
    v_name text;
    v_now timestamptz;
BEGIN
    FOREACH v_name IN ARRAY ARRAY(SELECT b FROM unnest(p_budgets) b ORDER BY b) LOOP
        PERFORM pg_advisory_xact_lock(mailroom_lock_class('budget'), hashtext(v_name));
    END LOOP;
    v_now := clock_timestamp();
    SELECT min(floor(b.burst - s.ahead / s.gap)), min(b.burst),
           greatest(max(s.ahead - (b.burst - least(p_needed, b.burst)) * s.gap), 0)
    INTO allowed, burst, wait
    FROM mailroom_budgets b,
    LATERAL (SELECT extract(epoch FROM b.period)::double precision / b.tokens AS gap,
                    extract(epoch FROM greatest(b.taken_until, v_now) - v_now)::double precision AS ahead) s
    WHERE b.name = ANY (p_budgets);
END
$$;

-- Takes p_tokens from the budgets of a queue, whose locks the transaction holds. Rounds up to microseconds, so that no
-- rate is exceeded.
CREATE OR REPLACE FUNCTION mailroom_debit(p_budgets text[], p_tokens integer) RETURNS void LANGUAGE sql AS $$
    UPDATE mailroom_budgets b
    SET taken_until = greatest(b.taken_until, clock_timestamp())
        + ceil(extract(epoch FROM b.period) * 1000000 * p_tokens / b.tokens)::bigint * interval '1 microsecond'
    WHERE b.name = ANY (p_budgets)
$$;

-- How many tokens a claim of p_limit may take within the budgets of its queue, and the wait until the next may be
-- taken. An abandoned batch is leased whole, so it waits until that many may be taken, or the burst is full; one that a
-- rewind has emptied does not wait. A claim that wants a full batch waits until the budgets allow one if enough tokens
-- are due; if fewer are, it takes none, and seen and last say what it saw. take_over: false if no batch is abandoned
-- and the burst is not full, so that one which becomes abandoned a moment later waits for the next claim.
CREATE OR REPLACE FUNCTION mailroom_claim_limit(p_queue text, p_budgets text[], p_limit integer, p_partial boolean, p_take_over boolean,
    p_cursor bigint, p_top bigint, p_actions token_action[], p_receipt mailroom_receipt, p_held bigint DEFAULT NULL,
    OUT allowed integer, OUT seen integer, OUT last bigint, OUT wait double precision, OUT take_over boolean)
LANGUAGE plpgsql AS $$
DECLARE
    v_now record;
    v_needed integer;
BEGIN
    v_now := mailroom_allowance(p_budgets, 1);
    -- Less than none is allowed after a batch that was larger than the burst.
    allowed := greatest(least(p_limit, v_now.allowed), 0); wait := coalesce(v_now.wait, 0); seen := 0;
    take_over := p_take_over;
    IF v_now.allowed < v_now.burst THEN
        SELECT (SELECT coalesce(sum(upper(g) - lower(g)), 0)
                FROM mailroom_batches b, unnest(mailroom_batch_ids(b.ids, b.ids_mask)) g WHERE b.id = f.abandoned)
        INTO v_needed
        FROM mailroom_queue_state(p_queue) s,
             mailroom_find_abandoned(p_queue, s.open_from, p_take_over, p_receipt.batch, p_receipt.attempt, p_held) f
        WHERE f.abandoned IS NOT NULL;
        take_over := p_take_over AND v_needed IS NOT NULL;
        IF v_needed IS NULL AND NOT p_partial AND allowed < least(p_limit, v_now.burst) THEN
            SELECT w.due, w.last INTO seen, last FROM mailroom_window(p_cursor, p_top, p_limit, p_actions) w;
            IF seen BETWEEN 1 AND p_limit - 1 THEN
                allowed := 0;
                RETURN;
            ELSIF seen > 0 THEN
                v_needed := p_limit; seen := 0; last := NULL;
            END IF;
        END IF;
        IF v_needed IS NOT NULL AND v_now.allowed < least(v_needed, v_now.burst) THEN
            allowed := 0;
            wait := (SELECT a.wait FROM mailroom_allowance(p_budgets, v_needed) a);
        ELSIF v_needed = 0 THEN
            allowed := p_limit;
        END IF;
    END IF;
END
$$;
