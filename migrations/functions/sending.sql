-- The functions of applications: ask for a message, cancel it, ask what became of it. Each runs with the rights of the
-- owner of the tables, so that an application needs none on them: EXECUTE is taken from everyone, and given to roles of
-- producers.

-- Asks for a message, and returns its id. With a key that a message of its owner has already it returns that message's id, and asks
-- for nothing: an error if that one has other content, unless options has "replace": then what has not left is
-- cancelled in favour of this one. The key of a message whose mail never left, and never will, is free. What it did is in the setting
-- mailroom.sent: new, known or replaced. attachments: an array of objects with name, content (base64), content_type and
-- content_id. Waits for a transaction that uses the same key; in REPEATABLE READ that may end in SQLSTATE 40001.
CREATE OR REPLACE FUNCTION mailroom_send(recipients text[], template text DEFAULT NULL, data jsonb DEFAULT NULL,
    locale text DEFAULT NULL, subject text DEFAULT NULL, text text DEFAULT NULL, html text DEFAULT NULL, cc text[] DEFAULT NULL,
    bcc text[] DEFAULT NULL, sender text DEFAULT NULL, reply_to text DEFAULT NULL, headers jsonb DEFAULT NULL,
    attachments jsonb DEFAULT NULL, action text DEFAULT 'message', account bigint DEFAULT NULL, profile text DEFAULT NULL,
    send_after timestamptz DEFAULT NULL, expires_at timestamptz DEFAULT NULL, idempotency_key text DEFAULT NULL,
    reference text DEFAULT NULL, topic text DEFAULT NULL, options jsonb DEFAULT '{}')
RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER AS $$
#variable_conflict use_column
DECLARE
    v_id bigint;
    v_sent text := 'new';
    v_replace boolean := false;
    v_files jsonb;
    v_options jsonb;
BEGIN
    IF mailroom_send.options <> '{}' THEN
        v_replace := mailroom_option(mailroom_send.options, 'replace');
        v_options := CASE WHEN mailroom_send.options <> 'null' THEN mailroom_send.options - 'replace' END;
    END IF;
    IF mailroom_send.attachments IS NOT NULL THEN
        v_files := nullif(nullif(mailroom_send.attachments, 'null'), '[]');
    END IF;
    IF array_to_string(mailroom_send.recipients || mailroom_send.cc || mailroom_send.bcc, E'\x01', '') || E'\x01' ~ '^[ \t\r\n\x01]|[ \t\r\n]\x01|\x01[ \t\r\n\x01]' THEN
        mailroom_send.recipients := mailroom_list(mailroom_send.recipients);
        mailroom_send.cc := mailroom_list(mailroom_send.cc);
        mailroom_send.bcc := mailroom_list(mailroom_send.bcc);
    END IF;
    -- A statement of its own: with ON CONFLICT each row is written twice to the WAL.
    IF mailroom_send.idempotency_key IS NULL THEN
        INSERT INTO mailroom_messages (action, account, recipients, cc, bcc, sender, reply_to, headers, template, locale, data, subject, text,
                                       html, profile, send_after, expires_at, reference, topic, options)
        VALUES (coalesce(mailroom_send.action, 'message'), mailroom_send.account, mailroom_send.recipients, mailroom_send.cc, mailroom_send.bcc,
                mailroom_send.sender, mailroom_send.reply_to, mailroom_send.headers, mailroom_send.template, mailroom_send.locale,
                mailroom_send.data, mailroom_send.subject, mailroom_send.text, mailroom_send.html, mailroom_send.profile,
                mailroom_send.send_after, mailroom_send.expires_at, mailroom_send.reference, mailroom_send.topic, v_options)
        RETURNING id INTO v_id;
    ELSE
        DECLARE
            v_new mailroom_messages;
            v_old mailroom_messages;
            v_owner bigint;
        BEGIN
            v_new.action := coalesce(mailroom_send.action, 'message'); v_new.account := mailroom_send.account;
            v_new.recipients := mailroom_send.recipients; v_new.cc := mailroom_send.cc; v_new.bcc := mailroom_send.bcc;
            v_new.sender := mailroom_send.sender; v_new.reply_to := mailroom_send.reply_to;
            v_new.headers := nullif(mailroom_send.headers, 'null'); v_new.template := mailroom_send.template;
            v_new.locale := mailroom_send.locale; v_new.data := nullif(mailroom_send.data, 'null');
            v_new.subject := mailroom_send.subject; v_new.text := mailroom_send.text; v_new.html := mailroom_send.html;
            v_new.profile := mailroom_send.profile; v_new.reference := mailroom_send.reference; v_new.topic := mailroom_send.topic;
            v_new.fingerprint := mailroom_fingerprint(v_new, v_files);
            -- That of the settings could be another's, and the index would tell which keys that one has.
            v_owner := mailroom_true_owner();
            -- Again where the message that had the key is gone or replaced meanwhile. A bound, since a trigger of the application may drop each.
            FOR v_try IN 1 .. 100 LOOP
                INSERT INTO mailroom_messages (owner, action, account, recipients, cc, bcc, sender, reply_to, headers, template, locale, data, subject,
                                               text, html, profile, send_after, expires_at, idempotency_key, reference, topic, options, fingerprint)
                VALUES (v_owner, v_new.action, mailroom_send.account, mailroom_send.recipients, mailroom_send.cc, mailroom_send.bcc,
                        mailroom_send.sender, mailroom_send.reply_to, mailroom_send.headers, mailroom_send.template, mailroom_send.locale,
                        mailroom_send.data, mailroom_send.subject, mailroom_send.text, mailroom_send.html, mailroom_send.profile,
                        mailroom_send.send_after, mailroom_send.expires_at, mailroom_send.idempotency_key, mailroom_send.reference, mailroom_send.topic,
                        v_options,
                        v_new.fingerprint)
                ON CONFLICT (owner, idempotency_key) WHERE idempotency_key IS NOT NULL AND replaced_at IS NULL DO NOTHING
                RETURNING id INTO v_id;
                EXIT WHEN v_id IS NOT NULL;
                SELECT * INTO v_old FROM mailroom_messages m
                WHERE m.owner = v_owner AND m.idempotency_key = mailroom_send.idempotency_key AND m.replaced_at IS NULL;
                CONTINUE WHEN NOT FOUND;
                IF mailroom_has_died(v_old) THEN
                    UPDATE mailroom_messages m SET replaced_at = clock_timestamp() WHERE m.id = v_old.id AND m.replaced_at IS NULL;
                    CONTINUE;
                ELSIF v_old.fingerprint = v_new.fingerprint AND v_old.options->>'batch' IS NOT DISTINCT FROM v_options->>'batch' AND (v_replace IS NOT TRUE OR NOT mailroom_is_rescheduled(
                       v_old, mailroom_send.send_after, mailroom_send.expires_at)) THEN
                    PERFORM set_config('mailroom.sent', 'known', false);
                    RETURN v_old.id;
                ELSIF v_replace IS NOT TRUE THEN
                    RAISE EXCEPTION 'another message has the idempotency_key "%"', mailroom_send.idempotency_key
                        USING ERRCODE = 'unique_violation', HINT = 'use another key, or options => ''{"replace": true}''';
                END IF;
                v_sent := 'replaced';
                UPDATE mailroom_messages m SET replaced_at = clock_timestamp() WHERE m.id = v_old.id AND m.replaced_at IS NULL;
                IF FOUND THEN
                    PERFORM mailroom_cancel_tokens(v_old.id, v_old.send_after);
                    -- After the last batch that may hold a token of it: mailroom_was_told().
                    UPDATE mailroom_messages m SET replaced_at = mailroom_end_tokens(v_old.id, m.replaced_at) WHERE m.id = v_old.id;
                END IF;
            END LOOP;
        END;
    END IF;
    IF v_id IS NULL THEN
        PERFORM mailroom_refuse_dropped();
    END IF;
    IF v_files IS NOT NULL THEN
        PERFORM mailroom_attach_files(v_id, v_files);
    END IF;
    IF current_setting('mailroom.sent', true) IS DISTINCT FROM v_sent THEN
        PERFORM set_config('mailroom.sent', v_sent, false);
    END IF;
    RETURN v_id;
END
$$;

-- Raises the error for a message that the table did not take, where its id is asked for.
CREATE OR REPLACE FUNCTION mailroom_refuse_dropped() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the message was not stored' USING ERRCODE = 'object_not_in_prerequisite_state',
        HINT = 'a trigger or rule of the application on mailroom_messages drops it: \d mailroom_messages shows them';
END
$$;

-- Returns the boolean p_name of the options of mailroom_send(). An unknown key is an error, so that a misspelt one is
-- not ignored.
CREATE OR REPLACE FUNCTION mailroom_option(p_options jsonb, p_name text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_key text;
BEGIN
    IF coalesce(p_options, 'null') IN ('null', '{}') THEN
        RETURN false;
    ELSIF jsonb_typeof(p_options) <> 'object' THEN
        RAISE EXCEPTION 'options is not an object' USING ERRCODE = 'invalid_parameter_value', HINT = 'write it as {"replace": true}';
    END IF;
    SELECT k INTO v_key FROM jsonb_object_keys(p_options) k WHERE k NOT IN ('replace', 'notify', 'traceparent', 'keep_return_path', 'tags', 'batch') LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'there is no option "%"', left(v_key, 100) USING ERRCODE = 'invalid_parameter_value', HINT = 'options: replace, notify, tags, traceparent, keep_return_path';
    ELSIF jsonb_typeof(p_options->p_name) NOT IN ('boolean', 'null') THEN
        RAISE EXCEPTION 'the option "%" is neither true nor false', p_name USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN coalesce((p_options->>p_name)::boolean, false);
END
$$;

-- Returns mailboxes without the blanks and line ends around them, and without an empty one at the end: those of
-- string_to_array('a@x; b@y;', ';').
CREATE OR REPLACE FUNCTION mailroom_list(p_mailboxes text[]) RETURNS text[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    v_all text[] := ARRAY(SELECT btrim(u.mailbox, E' \t\r\n') FROM unnest(p_mailboxes) WITH ORDINALITY u (mailbox, place) ORDER BY u.place);
    v_last integer := cardinality(v_all);
BEGIN
    RETURN CASE WHEN p_mailboxes IS NOT NULL THEN CASE WHEN v_last > 1 AND v_all[v_last] = '' THEN v_all[1 : v_last - 1] ELSE v_all END END;
END
$$;

-- True if no mail of a message has left and none ever will: it was cancelled, refused, or has expired. Its key is free then.
CREATE OR REPLACE FUNCTION mailroom_has_died(p_message mailroom_messages) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_now bigint := floor(extract(epoch FROM clock_timestamp()));
BEGIN
    -- Most have a mail that has left, or waits.
    IF EXISTS (SELECT FROM mailroom_schedule s WHERE s.send_after = p_message.send_after AND s.message = p_message.id)
       OR EXISTS (
        SELECT FROM tokens t LEFT JOIN (jobs j JOIN mailroom_deliveries d ON d.queue = j.job_type) ON d.token = t.id
        WHERE t.message = p_message.id
          AND (d.accepted_at IS NOT NULL OR d.unknowns > 0
               OR coalesce(d.state, 'deferred') = 'deferred' AND mailroom_is_live(t.consumed_at, t.expires_at, v_now))) THEN
        RETURN false;
    END IF;
    RETURN (SELECT coalesce(bool_and(s.state IN ('cancelled', 'rejected', 'expired')), false) FROM mailroom_states_of(p_message) s);
END
$$;

-- True if a message that still waits for its time would get another time.
CREATE OR REPLACE FUNCTION mailroom_is_rescheduled(p_old mailroom_messages, p_send_after timestamptz, p_expires_at timestamptz)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN (p_old.send_after, p_old.expires_at) IS DISTINCT FROM (p_send_after, p_expires_at) AND EXISTS (
        SELECT FROM mailroom_schedule s WHERE s.send_after = p_old.send_after AND s.message = p_old.id);
END
$$;

-- Adds the attachments of mailroom_send() to a message.
CREATE OR REPLACE FUNCTION mailroom_attach_files(p_message bigint, p_files jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_key text;
BEGIN
    IF jsonb_typeof(p_files) <> 'array' OR EXISTS (SELECT FROM jsonb_array_elements(p_files) f WHERE jsonb_typeof(f) <> 'object') THEN
        RAISE EXCEPTION 'attachments is not an array of objects' USING ERRCODE = 'invalid_parameter_value',
            HINT = 'write it as [{"name": "bill.pdf", "content_type": "application/pdf", "content": "JVBE..."}]';
    END IF;
    SELECT k INTO v_key FROM jsonb_array_elements(p_files) f, jsonb_object_keys(f) k
    WHERE k NOT IN ('name', 'content_type', 'content_id', 'content') LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'an attachment has no setting "%"', left(v_key, 100)
            USING ERRCODE = 'invalid_parameter_value', HINT = 'settings: name, content (base64), content_type, content_id';
    END IF;
    -- For the triggers of the table.
    PERFORM set_config('mailroom.attaching', p_message::text, true);
    INSERT INTO mailroom_attachments (message, place, name, content_type, content_id, content)
    SELECT p_message, f.place, f.file->>'name', f.file->>'content_type', f.file->>'content_id', decode(f.file->>'content', 'base64')
    FROM jsonb_array_elements(p_files) WITH ORDINALITY f (file, place);
    PERFORM set_config('mailroom.attaching', '', true);
END
$$;

-- Cancels a message, and revokes its links: that with id, or the caller's with idempotency_key, or what waits of the caller's with
-- reference. Returns 'cancelled' if no mail of it has left and none will, 'sending' if a consumer holds one now, which it may still
-- send, 'sent' if one has left, null if there is no such message or it was cancelled before; of several with a reference 'sending' if
-- that holds for one, else 'cancelled' if one waited. A role cancels what belongs to it, or to a role that it is a member of; the message
-- of another is an error. One that may update messages cancels all, and that is recorded.
CREATE OR REPLACE FUNCTION mailroom_cancel(id bigint DEFAULT NULL, idempotency_key text DEFAULT NULL, reference text DEFAULT NULL)
RETURNS text LANGUAGE plpgsql SECURITY DEFINER AS $$
#variable_conflict use_column
DECLARE
    v_owner bigint := mailroom_true_owner();
    v_message bigint;
    v_result text;
    v_results text[] := '{}';
BEGIN
    IF num_nonnulls(mailroom_cancel.id, mailroom_cancel.idempotency_key, mailroom_cancel.reference) > 1 THEN
        RAISE EXCEPTION 'mailroom_cancel() takes an id, an idempotency_key or a reference' USING ERRCODE = 'invalid_parameter_value',
            HINT = 'name one of them';
    ELSIF mailroom_cancel.id IS NOT NULL THEN
        RETURN mailroom_cancel_message(mailroom_cancel.id);
    ELSIF mailroom_cancel.idempotency_key IS NOT NULL THEN
        RETURN mailroom_cancel_message((
            SELECT m.id FROM mailroom_messages m
            WHERE m.owner = v_owner AND m.idempotency_key = mailroom_cancel.idempotency_key AND m.replaced_at IS NULL));
    END IF;
    FOR v_message IN
        SELECT m.id FROM mailroom_messages m
        WHERE m.reference = mailroom_cancel.reference AND m.owner = v_owner AND m.cancelled_at IS NULL AND m.replaced_at IS NULL
        ORDER BY m.id
    LOOP
        IF EXISTS (SELECT FROM mailroom_message_status(v_message) s
                   WHERE s.state IN ('scheduled', 'waiting', 'leased', 'deferred', 'not_taken')) THEN
            v_results := v_results || mailroom_cancel_message(v_message);
        ELSE
            v_results := v_results || 'sent'::text;
        END IF;
    END LOOP;
    SELECT r INTO v_result FROM unnest('{sending,cancelled,sent}'::text[]) WITH ORDINALITY u (r, turn)
    WHERE r = ANY (v_results) ORDER BY turn LIMIT 1;
    RETURN v_result;
END
$$;

-- Does the work of mailroom_cancel() for one message.
CREATE OR REPLACE FUNCTION mailroom_cancel_message(p_message bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_message record;
    v_since timestamptz := clock_timestamp();
    v_result text;
BEGIN
    SELECT m.send_after, m.cancelled_at, m.replaced_at, m.owner INTO v_message FROM mailroom_messages m WHERE m.id = p_message FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    ELSIF NOT mailroom_is_own(v_message.owner, 'UPDATE') THEN
        PERFORM mailroom_refuse_other(p_message, v_message.owner);
    ELSIF coalesce(v_message.cancelled_at, v_message.replaced_at) IS NOT NULL THEN
        RETURN NULL;
    END IF;
    v_result := mailroom_cancel_tokens(p_message, v_message.send_after);
    UPDATE mailroom_messages m SET cancelled_at = mailroom_end_tokens(p_message, v_since) WHERE m.id = p_message;
    IF mailroom_is_for_history(v_message.owner) THEN
        PERFORM mailroom_record_operation('cancel message', NULL, jsonb_build_object('message', p_message, 'result', v_result));
    END IF;
    RETURN v_result;
END
$$;

-- Returns when a message ends whose tokens mailroom_cancel_tokens() has consumed since p_since, and dates these the same: it may have
-- waited for a claim, and what was consumed in a second before its message ended was consumed by somebody (consumed_as_sql).
CREATE OR REPLACE FUNCTION mailroom_end_tokens(p_message bigint, p_since timestamptz) RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_second bigint := floor(extract(epoch FROM v_now));
BEGIN
    IF v_second > floor(extract(epoch FROM p_since)) THEN
        UPDATE tokens t SET consumed_at = v_second
        WHERE t.message = p_message AND t.consumed_at >= floor(extract(epoch FROM p_since)) AND t.consumed_at < v_second;
    END IF;
    RETURN v_now;
END
$$;

-- Takes a message out of the schedule, or revokes its tokens. Returns what mailroom_cancel() does. With p_places only the
-- tokens of these recipients, and a message that is scheduled stays so. Tells the application of all for which no mail has left and
-- none will; a consumer that holds a token tells what it did.
--
-- No claim can lease a token while this transaction changes it. A claim that has begun before the shared lock below
-- ends before this looks at the batches; one that begins later sees the lock, and leases no token that a transaction in
-- progress is changing. FOR UPDATE, so that the row names this transaction alone.
CREATE OR REPLACE FUNCTION mailroom_cancel_tokens(p_message bigint, p_send_after timestamptz, p_places smallint[] DEFAULT NULL)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_result text := 'cancelled';
    v_has_left boolean := false;
    v_queues text[] := '{}';
    v_tokens bigint[] := '{}';
    r record;
BEGIN
    DELETE FROM mailroom_schedule s WHERE s.send_after = p_send_after AND s.message = p_message AND p_places IS NULL;
    IF FOUND OR EXISTS (SELECT FROM mailroom_schedule s WHERE s.send_after = p_send_after AND s.message = p_message) THEN
        PERFORM mailroom_tell_called_off(p_message, '{}', '{}', ARRAY(
            SELECT p FROM mailroom_messages m, unnest(mailroom_places(m.recipients || m.cc || m.bcc)) p
            WHERE m.id = p_message AND (p_places IS NULL OR p = ANY (p_places))));
        RETURN v_result;
    END IF;
    PERFORM pg_advisory_xact_lock_shared(mailroom_lock_class('cancel'), hashtext(q.job_type))
    FROM (SELECT j.job_type FROM jobs j ORDER BY j.job_type) q;
    PERFORM FROM tokens t WHERE t.message = p_message ORDER BY t.id FOR UPDATE;
    UPDATE tokens t SET consumed_at = floor(extract(epoch FROM clock_timestamp()))
    WHERE t.message = p_message AND t.consumed_at IS NULL AND (p_places IS NULL OR t.recipient = ANY (p_places));
    -- One expression, so that no interrupt between the two calls can leave the lock with the session.
    PERFORM CASE WHEN pg_advisory_lock(mailroom_lock_class('queue'), hashtext(q.job_type))::text IS NOT NULL
                 THEN pg_advisory_unlock(mailroom_lock_class('queue'), hashtext(q.job_type)) END
    FROM (SELECT j.job_type FROM jobs j ORDER BY j.job_type) q;
    FOR r IN
        SELECT j.job_type AS queue, t.id, d.accepted_at IS NOT NULL OR d.unknowns > 0 OR (d.token IS NULL AND NOT b.is_open) AS has_left,
               b.is_open, coalesce(d.state, 'deferred') = 'deferred' AND mailroom_takes(mailroom_queue_actions(j.job_type), t.action) AS is_due
        FROM tokens t CROSS JOIN jobs j
        LEFT JOIN mailroom_deliveries d ON d.queue = j.job_type AND d.token = t.id,
        LATERAL mailroom_holding_batch(j.job_type, t.id, t.created_at) b
        WHERE t.message = p_message AND (p_places IS NULL OR t.recipient = ANY (p_places))
    LOOP
        IF r.has_left THEN
            v_has_left := true;
        ELSIF r.is_open THEN
            v_result := 'sending';
        ELSIF r.is_due THEN
            v_queues := v_queues || r.queue; v_tokens := v_tokens || r.id;
        END IF;
    END LOOP;
    PERFORM mailroom_tell_called_off(p_message, v_queues, v_tokens, '{}');
    IF v_has_left THEN
        RETURN 'sent';
    END IF;
    -- A snapshot of before cannot show the batches that were made since.
    IF current_setting('transaction_isolation') <> 'read committed'
       AND (SELECT q.last_value FROM mailroom_batches_id_seq q WHERE q.is_called) > coalesce((SELECT max(b.id) FROM mailroom_batches b), 0) THEN
        RETURN 'sending';
    END IF;
    RETURN v_result;
END
$$;

-- Returns whether the batch of a queue that holds a token is still leased, and when it was claimed or acknowledged; nulls if
-- none holds it. The batch whose cursor reached the token has it, unless it was committed late or replayed.
CREATE OR REPLACE FUNCTION mailroom_holding_batch(p_queue text, p_token bigint, p_created_at bigint, OUT is_open boolean, OUT at timestamptz)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_state record;
BEGIN
    -- In the snapshot of all else, unlike mailroom_queue_state(): with a newer one a batch that was acknowledged meanwhile would be neither
    -- open nor emitted, and a mail that has left cancelled.
    SELECT n.cursor, n.open_from INTO v_state FROM (
        (SELECT b.cursor, b.open_from FROM mailroom_batches b WHERE b.queue = p_queue ORDER BY b.id DESC LIMIT 1)
        UNION ALL SELECT coalesce(j.last_seq, 0), 1 FROM jobs j WHERE j.job_type = p_queue) n LIMIT 1;
    SELECT true, b.claimed_at INTO is_open, at FROM mailroom_batches b
    WHERE b.queue = p_queue AND b.id >= v_state.open_from AND b.emitted_at IS NULL AND b.dead_at IS NULL
      AND mailroom_batch_ids(b.ids, b.ids_mask) @> p_token;
    IF FOUND OR p_token > v_state.cursor THEN
        RETURN;
    END IF;
    SELECT false, b.emitted_at INTO is_open, at FROM mailroom_batches b
    WHERE b.id = mailroom_batch_reaching(p_queue, p_token) AND b.emitted_at IS NOT NULL AND mailroom_batch_ids(b.ids, b.ids_mask) @> p_token;
    IF FOUND OR EXISTS (SELECT FROM mailroom_deliveries d WHERE d.queue = p_queue AND d.token = p_token) THEN
        RETURN;
    END IF;
    SELECT false, b.emitted_at INTO is_open, at FROM mailroom_batches b
    WHERE b.queue = p_queue AND b.id >= mailroom_first_batch_since(to_timestamp(p_created_at) - interval '1 hour')
      AND b.emitted_at IS NOT NULL AND b.ids @> p_token AND mailroom_batch_ids(b.ids, b.ids_mask) @> p_token
    ORDER BY b.id DESC LIMIT 1;
END
$$;

-- Returns what became of a message, a row for each recipient and queue; none if there is no such message. That of another role is an
-- error. state: a word of docs/outcomes.md, or 'scheduled', 'cancelled', 'replaced' or 'no_token'. queue is null where no queue takes
-- it yet.
CREATE OR REPLACE FUNCTION mailroom_message_status(id bigint, OUT recipient text, OUT state text, OUT queue text, OUT token bigint,
    OUT attempts integer, OUT at timestamptz, OUT code integer, OUT reply text, OUT message_id text)
RETURNS SETOF record LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
#variable_conflict use_column
DECLARE
    v_message mailroom_messages;
BEGIN
    SELECT * INTO v_message FROM mailroom_messages m WHERE m.id = mailroom_message_status.id;
    IF NOT FOUND THEN
        RETURN;
    ELSIF NOT mailroom_is_own(v_message.owner, 'SELECT') THEN
        PERFORM mailroom_refuse_other(v_message.id, v_message.owner);
    END IF;
    RETURN QUERY SELECT * FROM mailroom_states_of(v_message);
END
$$;

-- The same for a message that is at hand.
CREATE OR REPLACE FUNCTION mailroom_states_of(p_message mailroom_messages, OUT recipient text, OUT state text, OUT queue text, OUT token bigint,
    OUT attempts integer, OUT at timestamptz, OUT code integer, OUT reply text, OUT message_id text)
RETURNS SETOF record LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    v_mailboxes text[];
    v_is_scheduled boolean;
BEGIN
    v_mailboxes := coalesce(p_message.recipients || p_message.cc || p_message.bcc,
                            ARRAY(SELECT a.email::text FROM accounts a WHERE a.id = p_message.account));
    v_is_scheduled := EXISTS (SELECT FROM mailroom_schedule s WHERE s.send_after = p_message.send_after AND s.message = p_message.id);
    RETURN QUERY
        SELECT v_mailboxes[r.place],
               CASE WHEN d.accepted_at IS NOT NULL THEN coalesce(b.outcome, 'accepted')
                    WHEN j.is_open THEN 'leased'
                    WHEN d.state IN ('rejected', 'unknown', 'expired') THEN d.state
                    WHEN d.state IS NULL AND NOT j.is_open THEN 'emitted'
                    -- A newer message takes the place of one that has expired, too, and of one that was cancelled.
                    WHEN p_message.replaced_at IS NOT NULL AND p_message.cancelled_at IS NULL
                         AND (t.id IS NULL OR t.consumed_at IS NOT NULL) THEN 'replaced'
                    WHEN p_message.cancelled_at IS NOT NULL OR d.state = 'cancelled' THEN 'cancelled'
                    WHEN v_is_scheduled THEN 'scheduled'
                    WHEN t.id IS NULL THEN CASE WHEN p_message.erased_at IS NULL THEN 'no_token' ELSE 'not_recorded' END
                    WHEN t.consumed_at IS NOT NULL THEN 'skipped'
                    WHEN t.expires_at <= extract(epoch FROM clock_timestamp()) THEN 'expired'
                    WHEN d.state IS NOT NULL THEN d.state
                    WHEN j.name IS NULL THEN 'not_taken'
                    ELSE 'waiting' END,
               j.name, t.id, coalesce(d.attempts, 0),
               CASE WHEN b.at IS NOT NULL THEN b.at WHEN d.state IS NOT NULL THEN d.last_at WHEN j.at IS NOT NULL THEN j.at
                    ELSE coalesce(p_message.replaced_at, p_message.cancelled_at,
                                  CASE WHEN v_is_scheduled THEN p_message.send_after END, to_timestamp(t.created_at), p_message.created_at) END,
               CASE WHEN b.at IS NULL THEN d.code ELSE b.code END,
               CASE WHEN b.at IS NOT NULL THEN concat_ws(' ', b.reason || ':', b.status, b.reply)
                    WHEN t.id IS NOT NULL THEN d.reply
                    WHEN v_is_scheduled OR coalesce(p_message.replaced_at, p_message.cancelled_at, p_message.erased_at) IS NOT NULL THEN NULL
                    ELSE 'no trigger fired' END,
               d.message_id
        FROM (SELECT coalesce(p.place, 1) AS place FROM unnest(mailroom_places(v_mailboxes)) p (place)) r
        LEFT JOIN tokens t ON t.message = p_message.id AND coalesce(t.recipient, 1) = r.place
        LEFT JOIN LATERAL (
            SELECT q.job_type AS name, b.is_open, b.at
            FROM jobs q, LATERAL mailroom_holding_batch(q.job_type, t.id, t.created_at) b
            WHERE t.id IS NOT NULL AND (mailroom_takes(mailroom_queue_actions(q.job_type), t.action) OR EXISTS (
                SELECT FROM mailroom_deliveries e WHERE e.queue = q.job_type AND e.token = t.id))) j ON true
        LEFT JOIN mailroom_deliveries d ON d.queue = j.name AND d.token = t.id
        LEFT JOIN LATERAL (
            SELECT mailroom_reported_outcome(x.kind) AS outcome, x.at, x.code, x.reason, x.status, x.reply FROM mailroom_bounces x
            WHERE x.queue = j.name AND x.token = t.id AND x.at >= least(d.accepted_at, d.answered_at)
              AND mailroom_reported_outcome(x.kind) IS NOT NULL
            ORDER BY mailroom_report_rank(x.kind) DESC, x.id DESC LIMIT 1) b ON true
        ORDER BY r.place, j.name;
END
$$;

-- A trigger of an application's table: mailroom_send_row(template, column of the address [, column of the locale [,
-- columns that become data ...]]). No other column gets into a message. An empty name of the locale's column is none. A column
-- named traceparent becomes the trace of the message instead of data, and is left out if it is malformed. An argument key:COLUMN,
-- at any place behind the template, gives the message the key template:table:value of that column, and one that has a message is mailed no more.
-- An argument topic:NAME gives it a topic.
-- Mails when a row is inserted; updated, if a named column has changed; deleted, with the values before. A null address
-- sends nothing. The owner of the table is who asks, and needs the rights of a producer: whoever may create a trigger
-- could otherwise mail in the name of others.
CREATE OR REPLACE FUNCTION mailroom_send_row() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    v_owner name;
    v_table text;
    v_is_temporary boolean;
    v_row jsonb;
    v_before jsonb;
    v_names text[] := ARRAY(SELECT u.name FROM unnest(TG_ARGV) WITH ORDINALITY u (name, place) WHERE u.name !~ '^(key|topic):.' ORDER BY u.place);
    v_key text := (SELECT substr(u.name, 5) FROM unnest(TG_ARGV) u (name) WHERE u.name LIKE 'key:_%' LIMIT 1);
    v_data text[] := array_remove(v_names[4:], 'traceparent');
    v_missing text;
    v_new mailroom_messages;
BEGIN
    SELECT pg_get_userbyid(c.relowner), c.relpersistence = 't', CASE WHEN n.nspname <> 'public' THEN n.nspname || '.' ELSE '' END || r.relname
    INTO v_owner, v_is_temporary, v_table
    FROM pg_class c JOIN pg_class r ON r.oid = coalesce(pg_partition_root(c.oid), c.oid) JOIN pg_namespace n ON n.oid = r.relnamespace
    WHERE c.oid = TG_RELID;
    IF cardinality(v_names) < 2 OR TG_LEVEL <> 'ROW' OR TG_WHEN <> 'AFTER' OR TG_OP = 'TRUNCATE' THEN
        RAISE EXCEPTION 'mailroom_send_row() needs a template and a column, in a trigger AFTER ... FOR EACH ROW'
            USING ERRCODE = 'trigger_protocol_violated',
                  HINT = 'AFTER INSERT ON users FOR EACH ROW EXECUTE FUNCTION mailroom_send_row(''welcome'', ''email'')';
    ELSIF v_is_temporary THEN
        RAISE EXCEPTION 'mailroom_send_row() does not work for temporary tables' USING ERRCODE = 'wrong_object_type',
            HINT = 'call mailroom_send()';
    ELSIF NOT mailroom_may_send(to_regrole(quote_ident(v_owner))::oid) THEN
        RAISE EXCEPTION 'role "%", the owner of "%", may not send messages', v_owner, TG_TABLE_NAME
            USING ERRCODE = 'insufficient_privilege', HINT = 'give it the rights of a producer: docs/security.md';
    END IF;
    IF TG_OP = 'DELETE' THEN
        v_row := to_jsonb(OLD);
    ELSE
        v_row := to_jsonb(NEW);
    END IF;
    SELECT c INTO v_missing FROM unnest(array_remove(v_names[2:] || v_key, '')) c WHERE NOT v_row ? c LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '"%" has no column "%"', TG_TABLE_NAME, v_missing USING ERRCODE = 'undefined_column',
            HINT = 'mailroom_send_row() names the template, the columns of address and locale, and those that become data';
    END IF;
    IF TG_OP = 'UPDATE' THEN
        v_before := to_jsonb(OLD);
        IF NOT EXISTS (SELECT FROM unnest(array_remove(v_names[2:3], '') || v_data) c WHERE v_row->c IS DISTINCT FROM v_before->c) THEN
            RETURN NULL;
        END IF;
    END IF;
    IF v_row->>v_names[2] IS NULL THEN
        RETURN NULL;
    END IF;
    v_new.action := 'message';
    v_new.topic := (SELECT substr(u.name, 7) FROM unnest(TG_ARGV) u (name) WHERE u.name LIKE 'topic:_%' LIMIT 1);
    v_new.recipients := ARRAY[v_row->>v_names[2]];
    v_new.template := v_names[1];
    v_new.locale := nullif(v_row->>nullif(v_names[3], ''), '');
    v_new.data := (SELECT jsonb_object_agg(c, v_row->c) FROM unnest(v_data) c);
    v_new.owner := mailroom_number_of(mailroom_owning_role(to_regrole(quote_ident(v_owner))::oid));
    IF 'traceparent' = ANY (v_names[4:]) AND mailroom_traceparent(v_row->>'traceparent') IS NOT NULL THEN
        v_new.options := jsonb_build_object('traceparent', v_row->>'traceparent');
    END IF;
    IF v_row->>v_key IS NOT NULL THEN
        v_new.idempotency_key := v_names[1] || ':' || v_table || ':' || (v_row->>v_key);
        v_new.fingerprint := mailroom_fingerprint(v_new, NULL);
    END IF;
    -- A second time if the first has freed the key: a trigger of the application may drop each.
    FOR v_try IN 1 .. 2 LOOP
        INSERT INTO mailroom_messages (action, recipients, template, locale, data, topic, options, enqueued_by, owner, idempotency_key, fingerprint)
        VALUES (v_new.action, v_new.recipients, v_new.template, v_new.locale, v_new.data, v_new.topic, v_new.options, v_owner, v_new.owner,
                v_new.idempotency_key, v_new.fingerprint)
        ON CONFLICT (owner, idempotency_key) WHERE idempotency_key IS NOT NULL AND replaced_at IS NULL DO NOTHING;
        EXIT WHEN FOUND OR v_new.idempotency_key IS NULL OR NOT mailroom_free_key(v_new.owner, v_new.idempotency_key);
    END LOOP;
    RETURN NULL;
END
$$;
