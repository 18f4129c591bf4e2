-- What a collector says of a batch: the acknowledgement, and the outcome of each token.

-- The records that outcomes make at p_now, of p_ids. A deferred token that would be tried again later than a minute before
-- it expires, or a quarter of its life, is expired. It has no SET clause, so that queries inline it.
CREATE OR REPLACE FUNCTION mailroom_outcome_records(p_ids int8multirange, p_outcomes jsonb, p_now timestamptz)
RETURNS TABLE (token bigint, state text, attempts integer, unknowns integer, not_before timestamptz, accepted_at timestamptz,
               answered_at timestamptz, sink text, address text, code integer, reply text, counted_as text, message_id text,
               content_hash bytea, templates text)
LANGUAGE sql STABLE AS $$
    SELECT g.id, s.state, coalesce(o.attempts, 0), coalesce(o.unknowns, 0),
           CASE WHEN s.state = 'deferred' THEN p_now + o.wait * interval '1 second' END,
           CASE WHEN s.state = 'accepted' THEN p_now END, p_now - o.ago * interval '1 second',
           CASE WHEN x.is_deleted THEN NULL ELSE o.sink END, CASE WHEN x.is_deleted THEN NULL ELSE o.address END,
           CASE WHEN x.is_deleted THEN NULL ELSE o.code END,
           CASE WHEN x.is_deleted THEN 'the token was deleted' ELSE o.reply END,
           CASE WHEN s.state = 'accepted' OR o.unknowns > 0 THEN o.counted_as END, o.message_id,
           decode(o.content_hash, 'hex'), o.templates
    FROM jsonb_to_recordset(p_outcomes) o (first bigint, last bigint, state text, attempts integer, unknowns integer,
                                           wait double precision, ago double precision, sink text, address text,
                                           code integer, reply text, counted_as text, message_id text, content_hash text, templates text),
    LATERAL generate_series(o.first, o.last) g (id),
    LATERAL (SELECT CASE
        WHEN o.state <> 'deferred' THEN o.state
        WHEN extract(epoch FROM p_now) + o.wait > e.expires_at - least(60, (e.expires_at - e.created_at) / 4.0) THEN 'expired'
        WHEN e.expires_at IS NULL THEN 'cancelled'
        ELSE o.state
    END FROM (SELECT) one LEFT JOIN tokens e ON e.id = g.id) s (state),
    LATERAL (SELECT s.state = 'cancelled' AND o.state = 'deferred') x (is_deleted)
    WHERE g.id <@ p_ids
$$;

-- Returns the outcome of a delivery, as earlier_attempts has it. Inlined.
CREATE OR REPLACE FUNCTION mailroom_kept_outcome(p_delivery mailroom_deliveries) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'at', p_delivery.last_at, 'answered_at', p_delivery.answered_at, 'state', p_delivery.state, 'batch', p_delivery.batch,
        'sink', p_delivery.sink, 'address', p_delivery.address, 'code', p_delivery.code, 'reply', p_delivery.reply,
        'message_id', p_delivery.message_id)
        || CASE WHEN num_nonnulls(p_delivery.content_hash, p_delivery.templates) = 0 THEN '{}' ELSE jsonb_strip_nulls(jsonb_build_object(
            'content_hash', encode(p_delivery.content_hash, 'hex'), 'templates', p_delivery.templates)) END
$$;

-- Keeps the outcome of a delivery that another replaces: it is added to earlier_attempts, whatever statement brings the
-- other one, unless that has added it. A deferral without a reply says nothing of the token: it leaves an earlier
-- deferral as it is, with its time, and is not kept itself if nothing precedes it, or if what follows is of the same
-- batch.
CREATE OR REPLACE FUNCTION trg_before_delivery_outcome() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.earlier_attempts IS DISTINCT FROM OLD.earlier_attempts THEN
        RETURN NEW;
    END IF;
    IF NEW.state = 'deferred' AND NEW.reply IS NULL THEN
        NEW.answered_at := OLD.answered_at;
        IF OLD.state = 'deferred' THEN
            NEW.last_at := OLD.last_at; NEW.sink := OLD.sink; NEW.address := OLD.address; NEW.code := OLD.code;
            NEW.reply := OLD.reply;
            RETURN NEW;
        END IF;
    END IF;
    NEW.answered_at := coalesce(NEW.answered_at, OLD.answered_at);
    IF OLD.state <> 'deferred' OR OLD.reply IS NOT NULL OR (OLD.earlier_attempts IS NOT NULL AND OLD.batch <> NEW.batch) THEN
        NEW.earlier_attempts := coalesce(OLD.earlier_attempts, '[]') || mailroom_kept_outcome(OLD);
    END IF;
    RETURN NEW;
END
$$;

-- Records the outcomes of a batch: of p_ids, the ids that it still has, since a rewind may have taken others to emit
-- them again. A token without an outcome has been deleted. Never changes what a newer batch has recorded; a trigger
-- keeps what an older one has. Usually none of the tokens has a record, and a plain INSERT costs two thirds.
CREATE OR REPLACE FUNCTION mailroom_record_outcomes(p_queue text, p_batch bigint, p_ids int8multirange, p_outcomes jsonb)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_deleted int8multirange := p_ids - coalesce(
        (SELECT range_agg(int8range(o.first, o.last, '[]')) FROM jsonb_to_recordset(p_outcomes) o (first bigint, last bigint)), '{}');
BEGIN
    IF NOT isempty(v_deleted) THEN
        p_outcomes := coalesce(p_outcomes, '[]') || (
            SELECT jsonb_agg(jsonb_build_object('first', lower(r), 'last', upper(r) - 1, 'state', 'cancelled',
                                                'reply', 'the token was deleted'))
            FROM unnest(v_deleted) r);
    END IF;
    IF NOT EXISTS (SELECT FROM mailroom_deliveries d
                   WHERE d.queue = p_queue AND d.token >= lower(p_ids) AND d.token < upper(p_ids)) THEN
        INSERT INTO mailroom_deliveries (queue, token, state, attempts, unknowns, not_before, batch, first_at, last_at,
                                         accepted_at, answered_at, sink, address, code, reply, counted_as, message_id, content_hash,
                                         templates)
        SELECT p_queue, r.token, r.state, r.attempts, r.unknowns, r.not_before, p_batch, v_now, v_now,
               r.accepted_at, r.answered_at, r.sink, r.address, r.code, r.reply, r.counted_as, r.message_id, r.content_hash, r.templates
        FROM mailroom_outcome_records(p_ids, p_outcomes, v_now) r;
        RETURN;
    END IF;
    INSERT INTO mailroom_deliveries AS d (queue, token, state, attempts, unknowns, not_before, batch, first_at, last_at,
                                          accepted_at, answered_at, sink, address, code, reply, counted_as, message_id, content_hash,
                                          templates)
    SELECT p_queue, r.token, r.state, r.attempts, r.unknowns, r.not_before, p_batch, v_now, v_now,
           r.accepted_at, r.answered_at, r.sink, r.address, r.code, r.reply, r.counted_as, r.message_id, r.content_hash, r.templates
    FROM mailroom_outcome_records(p_ids, p_outcomes, v_now) r
    ON CONFLICT ON CONSTRAINT mailroom_deliveries_pkey DO UPDATE SET
        state = excluded.state, attempts = d.attempts + excluded.attempts, unknowns = d.unknowns + excluded.unknowns,
        not_before = excluded.not_before, batch = excluded.batch, last_at = excluded.last_at,
        accepted_at = coalesce(excluded.accepted_at, d.accepted_at), answered_at = excluded.answered_at,
        sink = excluded.sink, address = excluded.address, code = excluded.code, reply = excluded.reply,
        counted_as = coalesce(excluded.counted_as, d.counted_as),
        message_id = CASE WHEN excluded.sink IS NULL THEN d.message_id ELSE excluded.message_id END,
        content_hash = CASE WHEN excluded.sink IS NULL THEN d.content_hash ELSE excluded.content_hash END,
        templates = CASE WHEN excluded.sink IS NULL THEN d.templates ELSE excluded.templates END
    WHERE d.batch <= excluded.batch;
END
$$;

-- Records what the consumer of an attempt says that was taken over: its mails may have been accepted all the same. Adds
-- it to earlier_attempts, and counts it as an attempt, but not as unknown: the next consumer counts what it took over.
-- The last outcome stays that of the newest attempt, but a mail that was accepted ends a deferral that waits: it would be
-- mailed again, unless an operator had the token emitted again after this attempt. A token without a record gets one
-- that says nothing else, if it is of p_open, the batch that is leased again: its consumer fills it. An outcome that
-- counts as no attempt says nothing. A repeated receipt changes nothing.
CREATE OR REPLACE FUNCTION mailroom_record_late_outcomes(p_queue text, p_open int8multirange, p_receipt mailroom_receipt)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_attempt jsonb := jsonb_build_object('batch', p_receipt.batch, 'attempt', p_receipt.attempt);
    v_recorded jsonb[] := ARRAY[jsonb_build_array(v_attempt), jsonb_build_array(jsonb_build_object('ended_by', v_attempt))];
BEGIN
    UPDATE mailroom_deliveries d SET
        state = r.state, attempts = d.attempts + r.attempts, not_before = NULL, last_at = v_now,
        accepted_at = coalesce(d.accepted_at, r.accepted_at), answered_at = r.answered_at, sink = r.sink, address = r.address,
        code = r.code, reply = r.reply, counted_as = coalesce(d.counted_as, r.counted_as), message_id = r.message_id,
        content_hash = r.content_hash, templates = r.templates,
        earlier_attempts = coalesce(d.earlier_attempts, '[]')
            || (mailroom_kept_outcome(d) || jsonb_build_object('ended_by', v_attempt))
    FROM mailroom_outcome_records('{(,)}', p_receipt.outcomes, v_now) r
    WHERE d.queue = p_queue AND d.token = r.token AND r.state = 'accepted' AND d.state = 'deferred' AND d.not_before IS NOT NULL
      AND NOT coalesce(d.earlier_attempts, '[]') @> ANY (v_recorded)
      AND NOT EXISTS (SELECT FROM mailroom_batches s
                      WHERE s.queue = p_queue AND s.id > p_receipt.batch AND s.resent @> r.token);
    INSERT INTO mailroom_deliveries AS d (queue, token, state, attempts, batch, first_at, last_at, accepted_at, counted_as,
                                          message_id, earlier_attempts)
    SELECT p_queue, r.token, 'deferred', r.attempts, p_receipt.batch, v_now, v_now, r.accepted_at, r.counted_as, r.message_id,
           jsonb_build_array(v_attempt || jsonb_build_object(
               'at', v_now, 'answered_at', r.answered_at, 'state', r.state, 'sink', r.sink, 'address', r.address,
               'code', r.code, 'reply', r.reply, 'message_id', r.message_id) || jsonb_strip_nulls(jsonb_build_object(
                   'content_hash', encode(r.content_hash, 'hex'), 'templates', r.templates)))
    FROM mailroom_outcome_records('{(,)}', p_receipt.outcomes, v_now) r
    WHERE r.attempts + r.unknowns > 0 AND (r.token <@ p_open OR EXISTS (
        SELECT FROM mailroom_deliveries k WHERE k.queue = p_queue AND k.token = r.token))
    ON CONFLICT ON CONSTRAINT mailroom_deliveries_pkey DO UPDATE SET
        attempts = d.attempts + excluded.attempts, accepted_at = coalesce(d.accepted_at, excluded.accepted_at),
        counted_as = coalesce(d.counted_as, excluded.counted_as), message_id = coalesce(d.message_id, excluded.message_id),
        earlier_attempts = coalesce(d.earlier_attempts, '[]') || excluded.earlier_attempts
    WHERE NOT coalesce(d.earlier_attempts, '[]') @> ANY (v_recorded);
END
$$;

-- Replaces deferrals that p_batch has recorded of tokens whose answer it did not wait for, and which counted as maybe
-- accepted, by what became of them. Their unknowns are those from the deferral on: -1 if it is known now. Where another
-- batch has the token by now, this is an attempt that was taken over. A repeated report changes nothing: there are
-- seconds between two attempts at a token.
CREATE OR REPLACE FUNCTION mailroom_report_late(p_queue text, p_batch bigint, p_attempt integer, p_outcomes jsonb)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_others mailroom_receipt;
BEGIN
    v_others.batch := p_batch; v_others.attempt := p_attempt;
    WITH replaced AS (
        UPDATE mailroom_deliveries d SET
            state = r.state, attempts = d.attempts + r.attempts, unknowns = greatest(d.unknowns + r.unknowns, 0),
            not_before = r.not_before, last_at = v_now, accepted_at = coalesce(r.accepted_at, d.accepted_at),
            answered_at = r.answered_at, sink = r.sink, address = r.address, code = r.code, reply = r.reply,
            counted_as = coalesce(r.counted_as, d.counted_as),
            message_id = CASE WHEN r.sink IS NULL THEN d.message_id ELSE r.message_id END,
            content_hash = CASE WHEN r.sink IS NULL THEN d.content_hash ELSE r.content_hash END,
            templates = CASE WHEN r.sink IS NULL THEN d.templates ELSE r.templates END
        FROM mailroom_outcome_records('{(,)}', p_outcomes, v_now) r
        WHERE d.queue = p_queue AND d.token = r.token AND d.batch = p_batch AND d.state = 'deferred' AND d.not_before IS NOT NULL
          AND (d.answered_at < coalesce(r.answered_at, v_now) - interval '5 seconds') IS NOT FALSE
        RETURNING d.token)
    SELECT jsonb_agg(o || jsonb_build_object('unknowns', greatest((o->>'unknowns')::integer, 0))) INTO v_others.outcomes
    FROM jsonb_array_elements(p_outcomes) o
    WHERE (o->>'first')::bigint NOT IN (SELECT token FROM replaced)
      AND NOT EXISTS (SELECT FROM mailroom_deliveries d
                      WHERE d.queue = p_queue AND d.token = (o->>'first')::bigint AND d.batch = p_batch
                        AND (d.state <> 'deferred' OR d.not_before IS NOT NULL));
    PERFORM mailroom_record_late_outcomes(p_queue, '{}', v_others);
END
$$;

-- Closes a lease. The attempt number fences the lease, not the session: an acknowledgement is valid after a
-- reconnect, and void after a take-over (false). Repeating it after a lost reply is harmless. Returns null without a
-- batch. Adds expired and consumed to the skipped tokens that the claim counted. Records outcomes for a batch that is
-- not acknowledged yet, so that a repeated receipt changes nothing; those of an attempt that was taken over as earlier
-- attempts.
CREATE OR REPLACE FUNCTION mailroom_acknowledge(p_receipt mailroom_receipt)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_queue text;
    v_ids int8multirange;
    v_attempt integer;
    v_is_open boolean;
BEGIN
    IF p_receipt.batch IS NULL THEN
        RETURN NULL;
    END IF;
    IF p_receipt.outcomes IS NOT NULL THEN
        SELECT b.queue, mailroom_batch_ids(b.ids, b.ids_mask), b.attempts, b.emitted_at IS NULL AND b.dead_at IS NULL
        INTO v_queue, v_ids, v_attempt, v_is_open FROM mailroom_batches b
        WHERE b.id = p_receipt.batch AND (b.attempts > p_receipt.attempt
                                          OR b.attempts = p_receipt.attempt AND b.emitted_at IS NULL) FOR UPDATE;
        IF v_attempt > p_receipt.attempt THEN
            PERFORM mailroom_record_late_outcomes(v_queue, CASE WHEN v_is_open THEN v_ids ELSE '{}' END, p_receipt);
        ELSIF v_attempt = p_receipt.attempt THEN
            PERFORM mailroom_record_outcomes(v_queue, p_receipt.batch, v_ids, p_receipt.outcomes);
            IF p_receipt.outcomes @? '$[*].suppress' THEN
                PERFORM mailroom_suppress_refused(v_queue, p_receipt.batch, p_receipt.outcomes);
            END IF;
        END IF;
    END IF;
    UPDATE mailroom_batches SET
        signed_at = clock_timestamp() - p_receipt.signed_ago * interval '1 microsecond',
        written_at = clock_timestamp() - p_receipt.written_ago * interval '1 microsecond',
        emitted_at = clock_timestamp(),
        ids = CASE WHEN isempty(p_receipt.skipped_ids) THEN ids
              ELSE mailroom_batch_ids(ids, ids_mask) - p_receipt.skipped_ids END,
        ids_mask = CASE WHEN isempty(p_receipt.skipped_ids) THEN ids_mask END,
        skipped_ids = p_receipt.skipped_ids,
        emitted = p_receipt.emitted,
        skipped_expired = skipped_expired + p_receipt.expired,
        skipped_consumed = skipped_consumed + p_receipt.consumed,
        skipped_status = p_receipt.wrong_status,
        skipped_invalid = p_receipt.invalid
    WHERE id = p_receipt.batch AND attempts = p_receipt.attempt AND emitted_at IS NULL;
    IF FOUND THEN
        RETURN true;
    END IF;
    RETURN EXISTS (SELECT FROM mailroom_batches
                   WHERE id = p_receipt.batch AND attempts = p_receipt.attempt AND emitted_at IS NOT NULL);
END
$$;
