-- What an application is told of: outcomes that mailroom outcomes hands over, and notifications of messages that want one. A
-- token is told of once by each queue: by what ends it, or, while a batch holds it, by what the consumer records.

-- Keeps the outcomes that a statement has inserted, of which a deferral is the first of its token, or the final one of a row that it
-- has updated, if they are wanted, and notifies of final ones for messages with the option notify. SECURITY DEFINER, as what follows: a consumer needs no right on the table, and can tell
-- nothing else. A rewind says of a deferral that the cursor emits its token: that is none. The settings keep the plan for any
-- number of rows.
CREATE OR REPLACE FUNCTION trg_after_delivery_outcomes() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
AS $$
DECLARE
    v_is_wanted boolean := (SELECT h.outcomes_since FROM mailroom_home h) IS NOT NULL;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        IF NEW.state = 'cancelled' AND (NEW.reply = 'the cursor was moved: it emits the token' OR mailroom_was_told(NEW.token, nullif(NEW.batch, OLD.batch), OLD.batch)) THEN
            RETURN NULL;
        END IF;
        IF v_is_wanted THEN
            INSERT INTO mailroom_outcomes (queue, token, state, address, code, reply)
            VALUES (NEW.queue, NEW.token, mailroom_told_state(NEW.state, NEW.token), NEW.address, NEW.code, NEW.reply);
        END IF;
        PERFORM mailroom_notify_outcome(NEW.token);
        RETURN NULL;
    END IF;
    IF v_is_wanted THEN
        INSERT INTO mailroom_outcomes (queue, token, state, address, code, reply)
        SELECT c.queue, c.token, mailroom_told_state(c.state, c.token), c.address, c.code, c.reply FROM changed c
        WHERE NOT (c.state = 'cancelled' AND mailroom_was_told(c.token, c.batch)) ORDER BY c.token;
    END IF;
    PERFORM pg_notify('mailroom_outcome', m.id::text)
    FROM changed c JOIN tokens t ON t.id = c.token JOIN mailroom_messages m ON m.id = t.message
    WHERE c.state <> 'deferred' AND m.options @> '{"notify": true}'
      AND NOT (c.state = 'cancelled' AND mailroom_was_told(c.token, c.batch));
    RETURN NULL;
END
$$;

-- The same for tokens that a claim has passed, since they had expired or were consumed, and of which there is no other record. One
-- statement for all of them, and none that keeps outcomes while nobody wants them: a backlog of a million may have expired.
CREATE OR REPLACE FUNCTION trg_after_batch_passed() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
AS $$
DECLARE
    v_actions token_action[] := (SELECT q.actions FROM mailroom_queues q WHERE q.name = NEW.queue);
    v_after bigint := coalesce(
        (SELECT b.cursor FROM mailroom_batches b WHERE b.queue = NEW.queue AND b.id < NEW.id ORDER BY b.id DESC LIMIT 1), 0);
    v_now bigint := floor(extract(epoch FROM clock_timestamp()));
BEGIN
    IF (SELECT h.outcomes_since FROM mailroom_home h) IS NOT NULL THEN
        INSERT INTO mailroom_outcomes (queue, token, state, reply)
        SELECT NEW.queue, t.id, CASE WHEN t.consumed_at IS NULL THEN 'expired' ELSE 'cancelled' END,
               CASE WHEN t.consumed_at IS NOT NULL THEN 'the token has been consumed' END
        FROM tokens t
        WHERE t.id > v_after AND t.id <= NEW.cursor AND mailroom_takes(v_actions, t.action)
          AND CASE WHEN t.consumed_at IS NULL THEN t.expires_at <= v_now ELSE mailroom_called_off_at(t.id) IS NULL END ORDER BY t.id;
    END IF;
    IF NEW.skipped_expired > 0 THEN
        PERFORM pg_notify('mailroom_outcome', m.id::text) FROM tokens t JOIN mailroom_messages m ON m.id = t.message
        WHERE t.id > v_after AND t.id <= NEW.cursor AND t.message IS NOT NULL AND mailroom_takes(v_actions, t.action)
          AND t.consumed_at IS NULL AND t.expires_at <= v_now AND m.options @> '{"notify": true}';
    END IF;
    RETURN NULL;
END
$$;

-- The same for tokens that an operator kept from being emitted: he moved the cursor over them, or dropped their queue while they
-- waited. One that has an outcome already was told of.
CREATE OR REPLACE FUNCTION trg_after_operation() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    v_is_wanted boolean := (SELECT h.outcomes_since FROM mailroom_home h) IS NOT NULL;
    v_actions token_action[] := (SELECT q.actions FROM mailroom_queues q WHERE q.name = NEW.queue);
    v_now bigint := floor(extract(epoch FROM clock_timestamp()));
    v_state record;
    v_ids int8multirange;
BEGIN
    -- Who wants neither does not pay for a look at each token.
    IF NOT v_is_wanted AND NOT EXISTS (SELECT FROM mailroom_messages m WHERE m.options @> '{"notify": true}') THEN
        RETURN NULL;
    END IF;
    IF NEW.kind = 'rewind' THEN
        -- Somebody may have recorded it by hand.
        IF (NEW.details->>'cursor_before') IS NULL OR (NEW.details->>'cursor_after') IS NULL
           OR NEW.details->>'cursor_before' !~ '^\d{1,18}$' OR NEW.details->>'cursor_after' !~ '^\d{1,18}$' THEN
            RETURN NULL;
        END IF;
        v_ids := int8multirange(int8range((NEW.details->>'cursor_before')::bigint,
                                          greatest((NEW.details->>'cursor_before')::bigint, (NEW.details->>'cursor_after')::bigint), '(]'));
    ELSE
        v_state := mailroom_queue_state(NEW.queue);
        v_ids := int8multirange(int8range(v_state.cursor, NULL, '()')) + coalesce(
            (SELECT range_agg(g) FROM mailroom_gaps h, unnest(h.ids) g WHERE h.id = ANY (v_state.gap_ids)), '{}');
    END IF;
    WITH ended AS (
        SELECT t.id, t.message
        FROM unnest(v_ids) u (g), LATERAL (
            SELECT * FROM tokens WHERE tokens.id >= lower(u.g) AND (tokens.id < upper(u.g) OR upper_inf(u.g)) ORDER BY tokens.id LIMIT 2000000000) t
        WHERE mailroom_takes(v_actions, t.action) AND mailroom_is_live(t.consumed_at, t.expires_at, v_now)
          AND NOT EXISTS (
              SELECT FROM mailroom_deliveries d
              WHERE d.queue = NEW.queue AND d.token = t.id AND d.state <> 'deferred'
                AND d.reply IS DISTINCT FROM 'the cursor was moved: it emits the token')),
    told AS (
        INSERT INTO mailroom_outcomes (queue, token, state, reply)
        SELECT NEW.queue, e.id, 'cancelled', CASE NEW.kind WHEN 'rewind' THEN 'the cursor was moved over it' ELSE 'the queue was dropped' END
        FROM ended e WHERE v_is_wanted ORDER BY e.id)
    SELECT count(pg_notify('mailroom_outcome', m.id::text)) INTO v_now
    FROM ended e JOIN mailroom_messages m ON m.id = e.message WHERE m.options @> '{"notify": true}';
    RETURN NULL;
END
$$;

-- Returns since when nobody is to get the mail of a token, as its message was cancelled or replaced, or its recipient is
-- forgotten; null if that is not so.
CREATE OR REPLACE FUNCTION mailroom_called_off_at(p_token bigint) RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT least(m.replaced_at, m.cancelled_at, CASE WHEN (m.recipients || m.cc || m.bcc)[t.recipient] = '' THEN m.erased_at END)
            FROM tokens t JOIN mailroom_messages m ON m.id = t.message WHERE t.id = p_token);
END
$$;

-- True if the application was told that a token is cancelled: before p_batch took it (null: no batch holds it), and while p_before
-- did not hold it, which has deferred it. mailroom_cancel_tokens() tells of what no batch holds, and its callers write the time after
-- that.
CREATE OR REPLACE FUNCTION mailroom_was_told(p_token bigint, p_batch bigint, p_before bigint DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_at timestamptz := mailroom_called_off_at(p_token);
BEGIN
    RETURN v_at IS NOT NULL AND NOT EXISTS (
        SELECT FROM mailroom_batches b, LATERAL (SELECT b.id = p_batch) c (holds)
        WHERE b.id IN (p_batch, p_before) AND v_at >= coalesce((b.earlier_attempts->0->>'claimed_at')::timestamptz, b.claimed_at)
          AND (c.holds OR v_at < coalesce(b.emitted_at, 'infinity')));
END
$$;

-- Returns the word by which an application is told of an outcome: that of mailroom_message_status().
CREATE OR REPLACE FUNCTION mailroom_told_state(p_state text, p_token bigint) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN CASE WHEN p_state = 'cancelled' AND EXISTS (
        SELECT FROM tokens t JOIN mailroom_messages m ON m.id = t.message WHERE t.id = p_token AND m.replaced_at IS NOT NULL)
        THEN 'replaced' ELSE p_state END;
END
$$;

-- Tells that a message was called off for tokens that no mail has left for, each in a queue; or for recipients at p_places, who
-- have no token yet.
CREATE OR REPLACE FUNCTION mailroom_tell_called_off(p_message bigint, p_queues text[], p_tokens bigint[], p_places smallint[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_message record;
BEGIN
    IF p_tokens = '{}' AND p_places = '{}' THEN
        RETURN;
    END IF;
    SELECT m.replaced_at IS NOT NULL AS is_replaced, m.options @> '{"notify": true}' AS wants_notice INTO v_message
    FROM mailroom_messages m WHERE m.id = p_message;
    IF (SELECT h.outcomes_since FROM mailroom_home h) IS NOT NULL THEN
        INSERT INTO mailroom_outcomes (queue, token, message, recipient, state, reply)
        SELECT e.queue, e.token, CASE WHEN e.token IS NULL THEN p_message END, e.place,
               CASE WHEN v_message.is_replaced THEN 'replaced' ELSE 'cancelled' END,
               CASE WHEN v_message.is_replaced THEN 'a message with the same key took its place' ELSE 'the message was cancelled' END
        FROM (SELECT u.queue, u.token, NULL::smallint AS place FROM unnest(p_queues, p_tokens) u (queue, token)
              UNION ALL SELECT NULL, NULL, p.place FROM unnest(p_places) p (place)) e
        ORDER BY e.token, e.place, e.queue;
    END IF;
    IF v_message.wants_notice THEN
        PERFORM pg_notify('mailroom_outcome', p_message::text);
    END IF;
END
$$;

-- Notifies of an outcome of a token, if its message wants that.
CREATE OR REPLACE FUNCTION mailroom_notify_outcome(p_token bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('mailroom_outcome', m.id::text) FROM tokens t JOIN mailroom_messages m ON m.id = t.message
    WHERE t.id = p_token AND m.options @> '{"notify": true}';
END
$$;

-- Begins to keep outcomes, or, with p_wanted false, ends that and removes those that are kept. Returns how many these are.
CREATE OR REPLACE FUNCTION mailroom_want_outcomes(p_wanted boolean) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_count bigint;
BEGIN
    UPDATE mailroom_home SET outcomes_since = CASE WHEN p_wanted THEN coalesce(outcomes_since, clock_timestamp()) END
    WHERE (outcomes_since IS NOT NULL) <> p_wanted;
    IF NOT p_wanted THEN
        DELETE FROM mailroom_outcomes;
    END IF;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    RETURN CASE WHEN p_wanted THEN (SELECT count(*) FROM mailroom_outcomes) ELSE v_count END;
END
$$;

-- Returns what an application that keeps uuids is told of a kept outcome: ids of the event and of the message, what it knows the mail by, and of
-- what came back the record, as long as that is there. Null for what is about no message.
CREATE OR REPLACE FUNCTION mailroom_outcome_event(p_outcome bigint) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    v_secret bytea := (SELECT s.secret FROM mailroom_id_secret s);
    v_form constant text := 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"';
BEGIN
    RETURN (
        SELECT jsonb_strip_nulls(jsonb_build_object(
            'event_id', mailroom_uuid(v_secret, 3, o.id, o.at), 'email_id', mailroom_uuid(v_secret, 1, m.id, m.created_at),
            'at', to_char(o.at AT TIME ZONE 'UTC', v_form), 'created_at', to_char(m.created_at AT TIME ZONE 'UTC', v_form),
            'state', o.state, 'topic', o.topic, 'sender', m.sender, 'subject', m.subject, 'tags', m.options->'tags',
            'recipient', coalesce(
                o.address, nullif(mailroom_address((m.recipients || m.cc || m.bcc)[coalesce(t.recipient, o.recipient)]), ''),
                (SELECT a.email FROM accounts a WHERE a.id = m.account)),
            'message_id', d.message_id, 'code', o.code, 'reply', o.reply,
            'is_called_off', coalesce(m.cancelled_at, m.replaced_at) IS NOT NULL,
            'bounce', (SELECT to_jsonb(b) - 'id' FROM (
                SELECT b.id, b.kind, b.reason, b.status, b.code, b.reply FROM mailroom_bounces b
                WHERE b.token = o.token AND b.queue = o.queue AND o.state = 'bounced' AND mailroom_reported_outcome(b.kind) = 'bounced'
                  AND concat_ws(' ', b.reason || ':', b.status, b.reply) = o.reply ORDER BY b.id LIMIT 1) b)))
        FROM mailroom_outcomes o LEFT JOIN tokens t ON t.id = o.token JOIN mailroom_messages m ON m.id = coalesce(t.message, o.message)
        LEFT JOIN mailroom_deliveries d ON d.queue = o.queue AND d.token = o.token
        WHERE o.id = p_outcome);
END
$$;
