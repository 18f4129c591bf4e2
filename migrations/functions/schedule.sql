-- Tokens of messages: made at once, or by mailroom_release() when their time has come.

CREATE OR REPLACE FUNCTION mailroom_different_places(p_mailboxes text[]) RETURNS smallint[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ARRAY(SELECT min(b.place)::smallint FROM unnest(p_mailboxes) WITH ORDINALITY b (mailbox, place)
             WHERE b.mailbox <> '' GROUP BY mailroom_canonical(mailroom_address(b.mailbox)) ORDER BY 1);

-- Returns the places of mailboxes, each address once; one null for none. One that was forgotten is empty. Inlined.
CREATE OR REPLACE FUNCTION mailroom_places(p_mailboxes text[]) RETURNS smallint[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE coalesce(cardinality(p_mailboxes), 0)
    WHEN 0 THEN '{null}'::smallint[]
    WHEN 1 THEN '{1}'::smallint[]
    ELSE mailroom_different_places(p_mailboxes)
END;

-- Returns when a token expires whose message may be sent from the start of this transaction on. No end is the end of the
-- year 9999. Inlined.
CREATE OR REPLACE FUNCTION mailroom_expiry(p_expires_at timestamptz, p_lifetime interval) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE
RETURN greatest(least(floor(date_part('epoch', coalesce(p_expires_at, now() + p_lifetime, 'infinity'))), 253402300799), 0)::bigint;

-- Makes the tokens of messages, in this order, one for each recipient; an address that is named twice gets one. A message that
-- was loaded from another database makes tokens of that one, which no claim takes. The
-- settings keep the plan for any number of messages, with index scans also where it is made while there are few.
CREATE OR REPLACE FUNCTION mailroom_make_tokens(p_messages bigint[]) RETURNS void LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
BEGIN
    INSERT INTO tokens (message, recipient, account, action, secret, code, expires_at, home, traceparent)
    SELECT m.id, m.place, m.account, m.action::token_action,
           CASE WHEN m.path IS NOT NULL THEN mailroom_random_secret() END,
           CASE WHEN m.has_code THEN mailroom_random_code() END,
           m.expires_at, m.home, m.traceparent
    FROM (SELECT u.place AS turn, m.id, unnest(mailroom_places(m.recipients || m.cc || m.bcc)) AS place, m.account, m.action, m.home, a.path, a.has_code,
                 mailroom_expiry(m.expires_at, a.lifetime) AS expires_at, m.options->>'traceparent' AS traceparent
          FROM unnest(p_messages) WITH ORDINALITY u (id, place) JOIN mailroom_messages m ON m.id = u.id
          JOIN mailroom_actions a ON a.action = m.action) m
    ORDER BY m.turn, m.place;
END
$$;

-- Makes the tokens of up to p_limit messages whose time has come, in its order; others may do so at the same time.
--   released  how many messages
--   next      when the next message is due, null if none is: in the past if there are more than p_limit
-- An insert like any other, so that the proof of the claim holds for it: it must not run in the transaction of a claim.
-- SECURITY DEFINER, so that a consumer needs no right to insert tokens. A message whose account is gone leaves the schedule
-- without a token, and so does one that has tokens: the owner made them by hand.
--
-- Entries that are gone stay in the index as long as somebody holds an old snapshot. So the session remembers up to when it
-- has released everything, and begins a minute before that. Once a minute it looks at all: a transaction may commit a
-- message whose time came while it was open.
CREATE OR REPLACE FUNCTION mailroom_release(p_limit integer, OUT released integer, OUT next timestamptz)
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_known text[] := string_to_array(nullif(current_setting('mailroom.released', true), ''), ' ');
    v_from timestamptz := '-infinity';
    v_seen_at double precision := extract(epoch FROM v_now);
    v_due bigint[];
    v_gone bigint[];
    v_last timestamptz;
BEGIN
    IF v_known[2]::double precision BETWEEN v_seen_at - 60 AND v_seen_at THEN
        v_from := to_timestamp(v_known[1]::double precision);
        v_seen_at := v_known[2]::double precision;
    END IF;
    WITH due AS MATERIALIZED (
        SELECT s.send_after, s.message FROM mailroom_schedule s
        WHERE s.send_after >= v_from AND s.send_after <= v_now
        ORDER BY s.send_after, s.message LIMIT p_limit FOR UPDATE SKIP LOCKED),
    gone AS (
        DELETE FROM mailroom_schedule s USING due d WHERE s.send_after = d.send_after AND s.message = d.message
        RETURNING s.send_after, s.message)
    SELECT array_agg(g.message ORDER BY g.send_after, g.message), max(g.send_after) INTO v_due, v_last FROM gone g;
    released := coalesce(cardinality(v_due), 0);
    IF released > 0 THEN
        v_gone := ARRAY(
            SELECT m.id FROM mailroom_messages m
            WHERE m.id = ANY (v_due) AND m.account IS NOT NULL AND NOT EXISTS (SELECT FROM accounts a WHERE a.id = m.account));
        PERFORM mailroom_delete_rows('mailroom_messages', v_gone);
        PERFORM mailroom_make_tokens(ARRAY(
            SELECT d.id FROM unnest(v_due) WITH ORDINALITY d (id, turn)
            WHERE d.id <> ALL (v_gone) AND NOT EXISTS (SELECT FROM tokens t WHERE t.message = d.id) ORDER BY d.turn));
    END IF;
    v_last := CASE WHEN released < p_limit THEN v_now ELSE v_last END;
    SELECT s.send_after INTO next FROM mailroom_schedule s WHERE s.send_after >= v_last ORDER BY s.send_after LIMIT 1;
    PERFORM set_config('mailroom.released', concat_ws(' ', extract(epoch FROM greatest(v_from, v_last - interval '1 minute')), v_seen_at),
                       false);
END
$$;

-- Wakes consumers for a message whose time comes before the next poll of one that rests (core/consumer/batcher).
CREATE OR REPLACE FUNCTION mailroom_wake_for(p_send_after timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF p_send_after < clock_timestamp() + interval '10 seconds' AND mailroom_inserts_notify() THEN
        NOTIFY token_insert;
    END IF;
END
$$;

-- Moves a message to another time: now, if that is in the past or null. One that has left the schedule stays as it is, and the
-- statement fails: it was sent, cancelled or replaced. SECURITY DEFINER, since no role may write the schedule.
CREATE OR REPLACE FUNCTION trg_before_message_rescheduled() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    NEW.send_after := greatest(NEW.send_after, clock_timestamp());
    IF NEW.send_after = 'infinity' OR NEW.expires_at <= NEW.send_after THEN
        RAISE EXCEPTION 'message % would expire before it is sent', NEW.id USING ERRCODE = 'check_violation',
            HINT = 'expires_at must be later than send_after; mailroom_cancel() ends a message';
    END IF;
    DELETE FROM mailroom_schedule s WHERE s.send_after = OLD.send_after AND s.message = OLD.id;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'message % is not scheduled any more', OLD.id USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'mailroom_message_status() says what became of it; what has left can only be asked for again';
    END IF;
    INSERT INTO mailroom_schedule (send_after, message) VALUES (NEW.send_after, NEW.id);
    PERFORM mailroom_wake_for(NEW.send_after);
    RETURN NEW;
END
$$;

-- Returns the messages of a period that nobody will ever send: they have neither a token nor a place in the schedule, and were
-- not cancelled, replaced, erased or loaded from another database. The trigger after_message_insert did not fire for them. is_later: it is for a time to come.
-- is_fit is false for one that the trigger would have refused, since it could bring a signed link to somebody else:
-- mailroom_make_tokens() checks nothing. Ids roughly follow created_at, so the search begins at an id: a transaction that was open
-- for more than an hour may hide a message.
CREATE OR REPLACE FUNCTION mailroom_lost_messages(p_since timestamptz, p_until timestamptz)
RETURNS TABLE (message bigint, is_later boolean, is_fit boolean) LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_low bigint := mailroom_bisect('messages', p_since - interval '1 hour', NULL, NULL);
BEGIN
    RETURN QUERY
        SELECT m.id, coalesce(m.send_after > now(), false),
               EXISTS (SELECT FROM mailroom_actions a WHERE a.action = m.action AND a.number > 2 AND a.retired_at IS NULL
                       AND (a.account_status IS NULL OR m.account IS NOT NULL)
                       AND (coalesce(m.recipients, m.cc, m.bcc) IS NULL OR a.account_status IS NULL AND (a.path IS NULL OR m.account IS NULL))
                       AND (a.producer IS NULL OR EXISTS (
                           SELECT FROM pg_roles r WHERE r.rolname = m.enqueued_by AND pg_has_role(r.oid, a.producer, 'MEMBER'))))
        FROM mailroom_messages m
        WHERE m.id >= v_low AND m.created_at >= p_since AND m.created_at < p_until
          AND m.replaced_at IS NULL AND m.cancelled_at IS NULL AND m.erased_at IS NULL AND m.home = mailroom_home_number()
          AND NOT EXISTS (SELECT FROM tokens t WHERE t.message = m.id)
          AND NOT EXISTS (SELECT FROM mailroom_schedule s WHERE s.send_after = m.send_after AND s.message = m.id)
          -- While the trigger before_message_rescheduled was off, the time of a message may have been changed.
          AND CASE WHEN m.send_after IS NULL THEN true ELSE NOT EXISTS (SELECT FROM mailroom_schedule s WHERE s.message = m.id OFFSET 0) END
        ORDER BY m.id;
END
$$;
