-- What HTTP asks for: many messages by one statement, and messages by the ids that applications keep.

-- Asks for messages, each an object whose members are arguments of mailroom_send(), in their order. Returns a row for each: its place,
-- from 0, and its id. The error for one that is refused has its place as DETAIL; with p_permissive it is a row with the words of the error instead,
-- and the others are stored all the same.
CREATE OR REPLACE FUNCTION mailroom_send_each(p_mails jsonb, p_permissive boolean DEFAULT false, OUT place integer, OUT message bigint,
    OUT email_id uuid, OUT code text, OUT problem text, OUT hint text)
RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE
    v_mail jsonb;
    v_hint text;
BEGIN
    place := 0;
    FOR v_mail IN SELECT m FROM jsonb_array_elements(p_mails) WITH ORDINALITY u (m, turn) ORDER BY u.turn LOOP
        IF p_permissive THEN
            BEGIN
                message := mailroom_send_one(v_mail);
                email_id := mailroom_email_id(message);
                code := NULL; problem := NULL; hint := NULL;
            EXCEPTION WHEN data_exception OR integrity_constraint_violation THEN
                GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, problem = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
                -- Of the key of the whole request.
                IF code = '23505' THEN
                    RAISE;
                END IF;
                message := NULL; email_id := NULL;
            END;
        ELSE
            message := mailroom_send_one(v_mail);
            email_id := mailroom_email_id(message);
        END IF;
        RETURN NEXT;
        place := place + 1;
    END LOOP;
EXCEPTION WHEN data_exception OR integrity_constraint_violation OR insufficient_privilege THEN
    GET STACKED DIAGNOSTICS v_hint = PG_EXCEPTION_HINT;
    RAISE EXCEPTION USING ERRCODE = SQLSTATE, MESSAGE = SQLERRM, HINT = v_hint, DETAIL = place::text;
END
$$;

-- Asks for messages, each an object as above that has an idempotency_key, by one statement, so that a group costs little more than one message. Returns
-- a row for each: its key and its id. Those of which the statement cannot know everything are asked for one by one: with a key that is there,
-- attachments, or mailboxes that are not tidy.
CREATE OR REPLACE FUNCTION mailroom_send_many(p_mails jsonb, OUT key text, OUT email_id uuid) RETURNS SETOF record LANGUAGE plpgsql SECURITY DEFINER
SET plan_cache_mode = force_generic_plan SET work_mem = '32MB'
AS $$
#variable_conflict use_column
DECLARE
    v_owner bigint := mailroom_true_owner();
    v_blocks bytea[] := mailroom_id_blocks((SELECT s.secret FROM mailroom_id_secret s));
    v_made text[] := '{}';
    v_mail jsonb;
    r record;
BEGIN
    FOR r IN
        INSERT INTO mailroom_messages AS m (owner, action, recipients, cc, bcc, sender, reply_to, headers, template, locale, data, subject, text,
                                            html, profile, send_after, expires_at, idempotency_key, reference, topic, options, fingerprint)
        SELECT v_owner, n.action, n.recipients, n.cc, n.bcc, n.sender, n.reply_to, n.headers, n.template, n.locale, n.data, n.subject, n.text,
               n.html, n.profile, n.send_after, n.expires_at, n.idempotency_key, n.reference, n.topic, n.options, mailroom_fingerprint(n, NULL)
        FROM jsonb_array_elements(p_mails) WITH ORDINALITY u (mail, turn),
        LATERAL jsonb_populate_record(NULL::mailroom_messages, '{"action": "message"}' || (u.mail - 'account' - 'raw' - 'return_path')) n
        WHERE n.idempotency_key IS NOT NULL AND NOT u.mail ? 'attachments' AND NOT coalesce(u.mail->'options' ? 'replace', false)
          AND NOT mailroom_option(n.options, 'replace')
          AND array_to_string(n.recipients || n.cc || n.bcc, E'\x01', '') || E'\x01' !~ '^[ \t\r\n\x01]|[ \t\r\n]\x01|\x01[ \t\r\n\x01]'
        ORDER BY u.turn
        ON CONFLICT (owner, idempotency_key) WHERE idempotency_key IS NOT NULL AND replaced_at IS NULL DO NOTHING
        RETURNING m.idempotency_key, m.id, m.created_at
    LOOP
        v_made := v_made || r.idempotency_key;
        key := r.idempotency_key; email_id := mailroom_uuid_by(v_blocks, 1, r.id, r.created_at);
        RETURN NEXT;
    END LOOP;
    IF cardinality(v_made) = jsonb_array_length(p_mails) THEN
        RETURN;
    END IF;
    FOR v_mail IN SELECT m FROM jsonb_array_elements(p_mails) WITH ORDINALITY u (m, turn) WHERE u.m->>'idempotency_key' <> ALL (v_made) ORDER BY u.turn LOOP
        key := v_mail->>'idempotency_key'; email_id := mailroom_email_id(mailroom_send_one(v_mail));
        RETURN NEXT;
    END LOOP;
END
$$;

-- Asks for the message whose arguments are the members of an object.
CREATE OR REPLACE FUNCTION mailroom_send_one(p_mail jsonb) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (
        SELECT mailroom_send(m.recipients, m.template, m.data, m.locale, m.subject, m.text, m.html, m.cc, m.bcc, m.sender, m.reply_to, m.headers,
                             m.attachments, action => m.action, profile => m.profile, send_after => m.send_after, expires_at => m.expires_at,
                             idempotency_key => m.idempotency_key, reference => m.reference, topic => m.topic, options => coalesce(m.options, '{}'))
        FROM jsonb_to_record(p_mail) m (recipients text[], template text, data jsonb, locale text, subject text, text text, html text, cc text[],
                                        bcc text[], sender text, reply_to text, headers jsonb, attachments jsonb, action text, profile text,
                                        send_after timestamptz, expires_at timestamptz, idempotency_key text, reference text, topic text, options jsonb));
END
$$;

-- Returns the states of the recipients of a message, each once: those of mailroom_message_status(), and suppressed for one that is cancelled as
-- the address is. A function of its own for what is at hand.
CREATE OR REPLACE FUNCTION mailroom_email_of(p_message mailroom_messages, OUT email_id uuid, OUT message bigint, OUT created_at timestamptz,
    OUT sender text, OUT recipients text[], OUT cc text[], OUT bcc text[], OUT reply_to text[], OUT subject text, OUT text text, OUT html text,
    OUT send_after timestamptz, OUT tags jsonb, OUT message_id text, OUT states text[])
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    email_id := mailroom_uuid((SELECT s.secret FROM mailroom_id_secret s), 1, p_message.id, p_message.created_at);
    message := p_message.id; created_at := p_message.created_at; sender := p_message.sender;
    recipients := coalesce(array_remove(p_message.recipients, ''), ARRAY(SELECT a.email::text FROM accounts a WHERE a.id = p_message.account));
    cc := array_remove(p_message.cc, ''); bcc := array_remove(p_message.bcc, '');
    reply_to := mailroom_mailboxes_of(p_message.reply_to);
    subject := p_message.subject; text := p_message.text; html := p_message.html; send_after := p_message.send_after;
    tags := p_message.options->'tags';
    SELECT array_agg(DISTINCT CASE WHEN s.state = 'cancelled' AND s.reply LIKE 'the address is suppressed:%' THEN 'suppressed' ELSE s.state END),
           min(s.message_id)
    INTO states, message_id FROM mailroom_states_of(p_message) s;
END
$$;

-- Returns a message that belongs to the caller's role, and what became of it; no row for another.
CREATE OR REPLACE FUNCTION mailroom_email(id uuid) RETURNS TABLE (email_id uuid, message bigint, created_at timestamptz, sender text,
    recipients text[], cc text[], bcc text[], reply_to text[], subject text, text text, html text, send_after timestamptz, tags jsonb,
    message_id text, states text[])
LANGUAGE plpgsql SECURITY DEFINER AS $$
#variable_conflict use_column
DECLARE
    v_id bigint := mailroom_message_of($1);
    v_owner bigint := mailroom_true_owner();
BEGIN
    RETURN QUERY SELECT e.* FROM mailroom_messages m, LATERAL mailroom_email_of(m) e WHERE m.id = v_id AND m.owner = v_owner;
END
$$;

-- Returns messages that belong to the caller's role, newest first, without their content: the newest, or those before or after one of them that is
-- named. An error if that is not the caller's.
CREATE OR REPLACE FUNCTION mailroom_emails(p_limit integer DEFAULT 20, older_than uuid DEFAULT NULL, newer_than uuid DEFAULT NULL)
RETURNS TABLE (email_id uuid, message bigint, created_at timestamptz, sender text, recipients text[], cc text[], bcc text[],
    reply_to text[], subject text, send_after timestamptz, tags jsonb, message_id text, states text[])
LANGUAGE plpgsql SECURITY DEFINER AS $$
#variable_conflict use_column
DECLARE
    v_owner bigint := mailroom_true_owner();
    v_than bigint := mailroom_message_of(coalesce(older_than, newer_than));
    v_ids bigint[];
BEGIN
    IF coalesce(older_than, newer_than) IS NOT NULL
       AND NOT EXISTS (SELECT FROM mailroom_messages m WHERE m.id = v_than AND m.owner = v_owner) THEN
        RAISE EXCEPTION 'there is no such message' USING ERRCODE = 'no_data_found';
    END IF;
    -- By the primary key from that message on, so that a role with many pays for what it reads.
    IF newer_than IS NOT NULL THEN
        v_ids := ARRAY(SELECT m.id FROM mailroom_messages m WHERE m.owner = v_owner AND m.id > v_than ORDER BY m.id LIMIT p_limit);
    ELSE
        v_ids := ARRAY(SELECT m.id FROM mailroom_messages m
                       WHERE m.owner = v_owner AND (v_than IS NULL OR m.id < v_than) ORDER BY m.id DESC LIMIT p_limit);
    END IF;
    RETURN QUERY
        SELECT e.email_id, e.message, e.created_at, e.sender, e.recipients, e.cc, e.bcc, e.reply_to, e.subject, e.send_after, e.tags, e.message_id, e.states
        FROM mailroom_messages m, LATERAL mailroom_email_of(m) e WHERE m.id = ANY (v_ids) ORDER BY m.id DESC;
END
$$;

-- Moves a message that waits for its time to another one. True if it has moved, false if it does not wait any more, null if there is none. That of
-- another role is an error.
CREATE OR REPLACE FUNCTION mailroom_reschedule(id bigint, send_after timestamptz) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$
#variable_conflict use_column
DECLARE
    v_message record;
    v_form constant text := 'YYYY-MM-DD"T"HH24:MI:SS"Z"';
BEGIN
    SELECT m.send_after, m.owner INTO v_message FROM mailroom_messages m WHERE m.id = mailroom_reschedule.id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    ELSIF NOT mailroom_is_own(v_message.owner, 'UPDATE') THEN
        PERFORM mailroom_refuse_other(mailroom_reschedule.id, v_message.owner);
    END IF;
    -- A consumer that releases it has locked the entry.
    PERFORM FROM mailroom_schedule s WHERE s.send_after = v_message.send_after AND s.message = mailroom_reschedule.id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE mailroom_messages m SET send_after = mailroom_reschedule.send_after WHERE m.id = mailroom_reschedule.id;
    IF mailroom_is_for_history(v_message.owner) THEN
        PERFORM mailroom_record_operation('reschedule message', NULL, jsonb_build_object(
            'message', mailroom_reschedule.id, 'before', to_char(v_message.send_after AT TIME ZONE 'UTC', v_form),
            'after', to_char(mailroom_reschedule.send_after AT TIME ZONE 'UTC', v_form)));
    END IF;
    RETURN true;
END
$$;
