-- Messages: what an INSERT refuses, the functions of applications, and what became of a message.

-- Returns the address of a mailbox: ada@example.org of 'Ada <ada@example.org>'. Inlined, as the index on it is written.
CREATE OR REPLACE FUNCTION mailroom_address(p_mailbox text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN rtrim(split_part(p_mailbox, '<', -1), '>');

-- True if each element is one mailbox: local@domain, <local@domain>, Name <local@domain> or "Name" <local@domain>. The
-- check is conservative; the sender checks all of it. False for an empty array, and for null elements. The first
-- expression knows most addresses, and takes a fifth of the time. Inlined.
CREATE OR REPLACE FUNCTION mailroom_are_mailboxes(p_mailboxes text[]) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
RETURN array_to_string(p_mailboxes, E'\x01', '') || E'\x01' ~ '^(?:[a-z0-9._+-]+@[a-z0-9.-]+\.[a-z]+\x01)+$'
    OR array_to_string(p_mailboxes, E'\x01', '') || E'\x01' ~
    '^(?:(?:(?:[^<>",;\x01]*|[^<>"@\x01]*|"(?:[^"\\\x01]|\\[^\x01])*" *)<(?:[^\s"(),:;<>@[\\\]\x01]+|"(?:[^"\\<>\x01]|\\[^<>\x01])+")@[^\s"(),:;<>@[\\\]\x01]+\.[^\s"(),:;<>@[\\\]\x01]+>|(?:[^\s"(),:;<>@[\\\]\x01]+|"(?:[^"\\<>\x01]|\\[^<>\x01])+")@[^\s"(),:;<>@[\\\]\x01]+\.[^\s"(),:;<>@[\\\]\x01]+)\x01)+$';


CREATE OR REPLACE FUNCTION mailroom_is_mailbox(p_mailbox text) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN p_mailbox IS NOT NULL THEN mailroom_are_mailboxes(ARRAY[p_mailbox]) END;

-- Returns the SHA-256 of what an idempotency key stands for. Neither send_after nor expires_at belongs to it: a statement
-- that is run again often computes them anew.
CREATE OR REPLACE FUNCTION mailroom_fingerprint(p_message mailroom_messages, p_attachments jsonb) RETURNS bytea
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
    IF p_message.raw IS NOT NULL THEN
        RETURN mailroom_raw_fingerprint(p_message.action, p_message.account, p_message.recipients, p_message.return_path,
                                        p_message.profile, p_message.reference);
    END IF;
    RETURN sha256(convert_to(jsonb_build_array(
        p_message.action, p_message.account, p_message.recipients, p_message.cc, p_message.bcc, p_message.sender,
        p_message.reply_to, p_message.headers, p_message.template, p_message.locale, p_message.data, p_message.subject,
        p_message.text, p_message.html, p_message.profile, p_message.reference, p_attachments)::text, 'UTF8'));
END
$$;

-- Raises an error unless p_id is a Message-ID that an application may give: none of mailroom's, of the domain of p_sender. If that is
-- null, the sender of the mail knows the domain, and refuses another one.
CREATE OR REPLACE FUNCTION mailroom_check_message_id(p_id text, p_sender text) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_domain text := substring(mailroom_canonical(mailroom_address(p_sender)) FROM '@([^@]*)$');
BEGIN
    IF octet_length(p_id) > 250 OR p_id !~ '^<[A-Za-z0-9!#$%&''*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&''*+/=?^_`{|}~-]+)*@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+>$' THEN
        RAISE EXCEPTION 'the header "Message-ID" is not such as <order.17@app.example>' USING ERRCODE = 'check_violation',
            HINT = 'it has at most 250 octets of ASCII';
    ELSIF p_id ~* '\.mailroom@' THEN
        RAISE EXCEPTION 'the Message-ID "%" is of the form that mailroom makes', p_id USING ERRCODE = 'check_violation',
            HINT = 'do not end what is before the @ with .mailroom';
    ELSIF lower(substring(p_id FROM '@(.*)>$')) <> v_domain THEN
        RAISE EXCEPTION 'the Message-ID "%" is not of the domain of the sender, %', p_id, v_domain USING ERRCODE = 'check_violation',
            HINT = format('write it as <order.17@%s>', v_domain);
    END IF;
END
$$;

-- Raises an error unless p_headers is an object of texts under names that mailroom does not write itself.
CREATE OR REPLACE FUNCTION mailroom_check_headers(p_headers jsonb, p_sender text) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_name text;
    v_value jsonb;
BEGIN
    IF jsonb_typeof(p_headers) <> 'object' THEN
        RAISE EXCEPTION 'headers is not an object' USING ERRCODE = 'check_violation',
            HINT = 'write it as {"List-Unsubscribe": "<https://example.org/u/17>"}';
    ELSIF octet_length(p_headers::text) > 32768 THEN
        RAISE EXCEPTION 'headers have more than 32768 octets' USING ERRCODE = 'check_violation';
    END IF;
    FOR v_name, v_value IN SELECT * FROM jsonb_each(p_headers) LOOP
        IF v_name !~ '^[A-Za-z0-9-]{1,64}$' THEN
            RAISE EXCEPTION 'a header has a name that is not 1 to 64 letters, digits and hyphens' USING ERRCODE = 'check_violation';
        ELSIF lower(v_name) ~ ('^(date|from|sender|reply-to|to|cc|bcc|subject|mime-version|auto-submitted|return-path'
                               '|received|delivered-to|dkim-signature|content-.*|resent-.*|x-mailroom-recipient)$') THEN
            RAISE EXCEPTION 'the header "%" is written by mailroom', v_name USING ERRCODE = 'check_violation',
                HINT = 'sender, reply_to, recipients, cc, bcc, subject and attachments are columns of their own';
        ELSIF jsonb_typeof(v_value) <> 'string' OR v_value #>> '{}' !~ '^[\x20-\x7e]+$' THEN
            RAISE EXCEPTION 'the header "%" is not a text of printable ASCII', v_name USING ERRCODE = 'check_violation';
        ELSIF lower(v_name) = 'message-id' THEN
            PERFORM mailroom_check_message_id(v_value #>> '{}', p_sender);
        END IF;
    END LOOP;
END
$$;

-- Returns what is kept of the options of a message, null for nothing: notify, and the traceparent, which is p_session if the options
-- have none and that is one.
CREATE OR REPLACE FUNCTION mailroom_kept_options(p_options jsonb, p_session text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_notify boolean := mailroom_option(p_options, 'notify');
    v_own jsonb := nullif(p_options->'traceparent', 'null');
    v_traceparent text := coalesce(mailroom_required_traceparent(v_own #>> '{}'), mailroom_traceparent(p_session));
BEGIN
    RETURN nullif(CASE WHEN v_notify THEN '{"notify": true}'::jsonb ELSE '{}' END
                  || CASE WHEN v_traceparent IS NULL THEN '{}' ELSE jsonb_build_object('traceparent', v_traceparent) END, '{}');
END
$$;

-- Gives explicit nulls their defaults, and sets what applications do not: enqueued_by, created_at, fingerprint and the times
-- after those. The owner of the table may set them: mailroom_send_row() does, and a restore.
CREATE OR REPLACE FUNCTION trg_before_message_insert() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_is_owner boolean := current_user = (SELECT pg_get_userbyid(c.relowner) FROM pg_class c WHERE c.oid = TG_RELID);
BEGIN
    NEW.action := coalesce(NEW.action, 'message');
    IF NOT v_is_owner THEN
        NEW.created_at := NULL; NEW.enqueued_by := NULL; NEW.fingerprint := NULL;
        NEW.replaced_at := NULL; NEW.cancelled_at := NULL; NEW.erased_at := NULL;
    END IF;
    NEW.created_at := coalesce(NEW.created_at, now());
    NEW.enqueued_by := coalesce(NEW.enqueued_by, mailroom_caller());
    IF jsonb_typeof(NEW.data) = 'null' THEN
        NEW.data := NULL;
    END IF;
    IF jsonb_typeof(NEW.headers) = 'null' THEN
        NEW.headers := NULL;
    ELSIF NEW.headers IS NOT NULL THEN
        PERFORM mailroom_check_headers(NEW.headers, NEW.sender);
    END IF;
    -- Before an index refuses them.
    IF greatest(octet_length(NEW.reference), octet_length(NEW.idempotency_key)) > 1024 THEN
        PERFORM mailroom_refuse('long', NEW);
    END IF;
    IF NEW.options ? 'replace' THEN
        RAISE EXCEPTION 'a message that is inserted has no option replace' USING ERRCODE = 'invalid_parameter_value',
            HINT = 'mailroom_send() takes it';
    END IF;
    IF NEW.options IS NOT NULL THEN
        NEW.options := mailroom_kept_options(NEW.options, NULL);
    END IF;
    IF NEW.idempotency_key IS NOT NULL AND NEW.fingerprint IS NULL THEN
        NEW.fingerprint := mailroom_fingerprint(NEW, NULL);
    END IF;
    RETURN NEW;
END
$$;

-- A function of its own, so that the check of messages without an account plans no look-up.
CREATE OR REPLACE FUNCTION mailroom_has_account(p_account bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM accounts a WHERE a.id = p_account);
END
$$;

-- Refuses what cannot be a mail, and makes the tokens of the rest, or puts it into the schedule. AFTER, so that a row
-- that ON CONFLICT drops makes no token; once a statement, since once a row takes twice the time for many rows. One
-- reading of the clock decides which messages wait: with two, a message could be in the schedule and have a token.
-- SECURITY DEFINER, so that a role that may insert messages needs no right on tokens. Who chooses the recipient of a
-- signed link can act for its owner: so a mail to an account goes to the address of the account only, the tokens of
-- accounts are made by nobody here, and an action may be reserved to a role.
CREATE OR REPLACE FUNCTION trg_after_message_insert() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_new record;
BEGIN
    SELECT min(p.problem || ' ' || m.id) AS problem,
           bool_or(m.send_after > v_now) AS has_later,
           array_agg(m.id ORDER BY m.id) FILTER (WHERE (m.send_after > v_now) IS NOT TRUE) AS at_once
    INTO v_new
    FROM added m LEFT JOIN mailroom_actions a ON a.action = m.action,
    LATERAL (SELECT CASE
        WHEN a.action IS NULL THEN 'unknown'
        WHEN a.number <= 2 THEN 'built-in'
        WHEN a.retired_at IS NOT NULL THEN 'retired'
        WHEN a.producer IS NOT NULL AND NOT pg_has_role(m.enqueued_by::name, a.producer, 'MEMBER') THEN 'reserved'
        WHEN a.account_status IS NOT NULL AND m.account IS NULL THEN 'accountless'
        WHEN m.account IS NOT NULL AND NOT mailroom_has_account(m.account) THEN 'no-account'
        WHEN (a.account_status IS NOT NULL OR (a.path IS NOT NULL AND m.account IS NOT NULL))
             AND coalesce(m.recipients, m.cc, m.bcc) IS NOT NULL THEN 'misdirected'
        WHEN m.recipients IS NULL AND (m.account IS NULL OR coalesce(m.cc, m.bcc) IS NOT NULL) OR m.recipients = '{}' THEN 'no-recipient'
        WHEN cardinality(m.recipients || m.cc || m.bcc) > CASE WHEN m.raw IS NULL THEN 100 ELSE 1000 END THEN 'too-many'
        WHEN greatest(octet_length(m.recipients[1]), octet_length(m.sender), octet_length(m.reply_to), octet_length(m.reference),
                      octet_length(m.idempotency_key), octet_length(m.locale), octet_length(m.profile), octet_length(m.return_path)) > 1024
             OR octet_length(m.subject) > 8192 OR octet_length(array_to_string(m.recipients || m.cc || m.bcc, ''))
                > CASE WHEN m.raw IS NULL THEN 65536 ELSE 262144 END THEN 'long'
        WHEN NOT mailroom_are_mailboxes(nullif(m.recipients || m.cc || m.bcc || array_remove(ARRAY[m.sender, m.reply_to, nullif(m.return_path, '')], NULL), '{}'))
            THEN 'mailbox'
        WHEN concat(m.subject, m.template, m.locale, m.profile, m.reference, m.idempotency_key, m.sender, m.reply_to, m.return_path,
                    array_to_string(m.recipients || m.cc || m.bcc, '')) ~ '[\x01-\x1f\x7f]' THEN 'control'
        WHEN m.send_after IN ('infinity', '-infinity') OR m.expires_at <= m.send_after THEN 'time'
        WHEN m.template !~ '^[A-Za-z0-9_][A-Za-z0-9_-]{0,99}$' THEN 'template'
        WHEN jsonb_typeof(m.data) <> 'object' THEN 'data'
        WHEN m.raw IS NULL AND m.return_path IS NOT NULL OR m.return_path <> mailroom_address(m.return_path) THEN 'return-path'
        WHEN m.raw IS NOT NULL THEN CASE
            WHEN num_nonnulls(m.template, m.locale, m.data, m.text, m.html, m.headers, m.cc, m.bcc, m.sender, m.reply_to) > 0 THEN 'raw-both'
            WHEN a.path IS NOT NULL THEN 'no-link'
            WHEN mailroom_raw_problem(m.raw) IS NOT NULL THEN 'raw' END
        WHEN m.subject IS NULL AND m.text IS NULL AND m.html IS NULL THEN
            CASE WHEN coalesce(m.template, a.template) IS NULL THEN 'empty' END
        WHEN m.template IS NOT NULL OR m.data IS NOT NULL THEN 'both'
        WHEN a.path IS NOT NULL THEN 'no-link'
        WHEN m.subject IS NULL THEN 'no-subject'
        WHEN m.text IS NULL AND m.html IS NULL THEN 'no-body'
        WHEN coalesce(octet_length(m.text), 0) + coalesce(octet_length(m.html), 0) > 26214400 THEN 'large'
        END) p (problem);
    IF v_new.problem IS NOT NULL THEN
        PERFORM mailroom_refuse(split_part(v_new.problem, ' ', 1), m) FROM mailroom_messages m
        WHERE m.id = split_part(v_new.problem, ' ', 2)::bigint;
    END IF;
    IF v_new.has_later THEN
        INSERT INTO mailroom_schedule (send_after, message) SELECT m.send_after, m.id FROM added m WHERE m.send_after > v_now;
        -- Their tokens are made by another transaction. Those that are made here get the trace of this one by a trigger of tokens.
        IF current_setting('mailroom.traceparent', true) <> '' THEN
            UPDATE mailroom_messages m SET options = mailroom_kept_options(m.options, current_setting('mailroom.traceparent', true))
            FROM added a WHERE a.id = m.id AND a.send_after > v_now;
        END IF;
    END IF;
    IF v_new.at_once IS NOT NULL THEN
        PERFORM mailroom_make_tokens(v_new.at_once);
    END IF;
    RETURN NULL;
END
$$;

-- Raises the error for a message that cannot be a mail. p_problem is that of trg_after_message_insert().
CREATE OR REPLACE FUNCTION mailroom_refuse(p_problem text, m mailroom_messages) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_text text;
    v_hint text;
    v_state text := 'check_violation';
BEGIN
    CASE p_problem
        WHEN 'unknown' THEN
            v_text := format('there is no action "%s"', m.action);
            v_hint := 'the owner of the tables creates it with mailroom_create_action()';
            v_state := 'foreign_key_violation';
        WHEN 'built-in' THEN
            v_text := format('a token of the action "%s" is not made by a message', m.action);
            v_hint := 'insert a row of accounts, or of tokens: docs/redeeming.md';
        WHEN 'retired' THEN
            v_text := format('the action "%s" is retired', m.action);
            v_hint := 'use another action';
        WHEN 'reserved' THEN
            v_text := format('role "%s" may not send messages of the action "%s"', m.enqueued_by, m.action);
            v_hint := (SELECT format('GRANT %I TO %I', a.producer, m.enqueued_by) FROM mailroom_actions a WHERE a.action = m.action);
            v_state := 'insufficient_privilege';
        WHEN 'accountless' THEN
            v_text := format('a message of the action "%s" needs an account', m.action);
            v_hint := 'account is the id of a row of accounts';
        WHEN 'no-account' THEN
            v_text := format('there is no account %s', m.account);
            v_hint := 'account is the id of a row of accounts';
            v_state := 'foreign_key_violation';
        WHEN 'misdirected' THEN
            v_text := format('a message of the action "%s" goes to the address of its account', m.action);
            v_hint := 'leave recipients, cc and bcc null';
        WHEN 'no-recipient' THEN
            v_text := 'a message needs a recipient';
            v_hint := 'recipients is an array of mailboxes: ARRAY[''ada@example.org'']';
        WHEN 'too-many' THEN
            v_text := format('a message has %s recipients, at most %s are allowed', cardinality(m.recipients || m.cc || m.bcc),
                             CASE WHEN m.raw IS NULL THEN '100' ELSE '1000' END);
            v_hint := 'send several messages';
        WHEN 'mailbox' THEN
            SELECT format(CASE b.place WHEN 2001 THEN 'the sender "%s" is not a mailbox' WHEN 2002 THEN 'the reply_to "%s" is not a mailbox'
                          WHEN 2003 THEN 'the return_path "%s" is not an address' ELSE '"%s" is not a mailbox' END, left(b.mailbox, 100))
            INTO v_text
            FROM (SELECT * FROM unnest(m.recipients || m.cc || m.bcc) WITH ORDINALITY
                  UNION ALL VALUES (m.sender, 2001), (m.reply_to, 2002), (nullif(m.return_path, ''), 2003)) b (mailbox, place)
            WHERE mailroom_is_mailbox(coalesce(b.mailbox, CASE WHEN b.place <= 2000 THEN '' END)) IS FALSE ORDER BY b.place LIMIT 1;
            v_hint := 'one mailbox is written as ada@example.org or Ada <ada@example.org>';
        WHEN 'control' THEN
            v_text := 'a message has a control character outside of text and html';
            v_hint := 'remove it: it could add a header';
        WHEN 'long' THEN
            v_text := 'a message has a mailbox, key, reference, subject or other name that is too long';
            v_hint := 'a subject has at most 8192 octets, the others 1024';
        WHEN 'time' THEN
            v_text := 'a message could never be sent: expires_at is not after send_after, or send_after is infinite';
            v_hint := 'expires_at may be infinity';
        WHEN 'template' THEN
            v_text := format('"%s" is not a name of a template', left(m.template, 100));
            v_hint := 'it has 1 to 100 letters, digits, - and _';
        WHEN 'data' THEN
            v_text := 'data is not an object';
            v_hint := 'write it as {"name": "Ada"}';
        WHEN 'empty' THEN
            v_text := 'a message has no content';
            v_hint := 'set template, or subject with text or html';
        WHEN 'both' THEN
            v_text := 'a message has content of its own, and a template or data';
            v_hint := 'set template and data, or subject with text or html';
        WHEN 'return-path' THEN
            v_text := CASE WHEN m.raw IS NULL THEN 'a message has a return_path, and no raw mail'
                           ELSE format('the return_path "%s" is not an address', left(m.return_path, 100)) END;
            v_hint := 'it is the envelope sender of a raw mail, written as ada@example.org; empty for none';
        WHEN 'raw-both' THEN
            v_text := 'a raw mail has other content, headers or mailboxes beside it';
            v_hint := 'beside raw set recipients and return_path, which are its envelope; subject is for lists';
        WHEN 'raw' THEN
            v_text := mailroom_raw_problem(m.raw);
            v_hint := 'raw is header, empty line and body, as SMTP carries it: docs/messages.md';
        WHEN 'no-link' THEN
            v_text := format('a message of the action "%s" has a link, for which its own content has no place', m.action);
            v_hint := 'set template and data';
        WHEN 'no-subject' THEN
            v_text := 'a message has no subject';
            v_hint := 'set subject with text or html';
        WHEN 'no-body' THEN
            v_text := 'a message has no text';
            v_hint := 'set text or html';
        WHEN 'large' THEN
            v_text := 'text and html have more than 25 MiB';
            v_hint := 'mail a link to the content';
    END CASE;
    RAISE EXCEPTION '%', v_text USING ERRCODE = v_state, HINT = v_hint;
END
$$;

-- Refuses an attachment to a message of another transaction or role, and what cannot be a file of a mail; numbers it.
CREATE OR REPLACE FUNCTION trg_before_attachment_insert() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    v_others record;
BEGIN
    IF NOT EXISTS (SELECT FROM mailroom_messages m
                   WHERE m.id = NEW.message AND m.created_at = now() AND m.enqueued_by = mailroom_caller()) THEN
        RAISE EXCEPTION 'this transaction has not inserted the message %', NEW.message USING ERRCODE = 'foreign_key_violation',
            HINT = 'insert a message and its attachments in one transaction, or use mailroom_send()';
    ELSIF EXISTS (SELECT FROM mailroom_messages m WHERE m.id = NEW.message AND m.raw IS NOT NULL) THEN
        RAISE EXCEPTION 'a raw mail has its attachments in itself' USING ERRCODE = 'check_violation';
    ELSIF NEW.name IS NULL OR NEW.name ~ '[\x01-\x1f\x7f/\\]' OR NEW.name = '' OR octet_length(NEW.name) > 255 THEN
        RAISE EXCEPTION 'the name of an attachment is not 1 to 255 octets without a slash or a control character'
            USING ERRCODE = 'check_violation';
    ELSIF octet_length(NEW.content_type) > 200 OR lower(NEW.content_type) ~ '^(multipart|message)/' OR NEW.content_type
          !~ '^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+(; *[A-Za-z0-9-]+=("[\x20\x21\x23-\x3a\x3c-\x5b\x5d-\x7e]*"|[A-Za-z0-9.+_-]+))*$' THEN
        RAISE EXCEPTION 'the attachment "%" has a type that is not such as application/pdf or text/csv; charset=utf-8', NEW.name
            USING ERRCODE = 'check_violation';
    ELSIF octet_length(NEW.content_id) > 200 OR NEW.content_id
          !~ '^[A-Za-z0-9_+=$-]+(\.[A-Za-z0-9_+=$-]+)*(@[A-Za-z0-9_+=$-]+(\.[A-Za-z0-9_+=$-]+)*)?$' THEN
        RAISE EXCEPTION 'the attachment "%" has a content id that is not such as logo or logo@app.example', NEW.name
            USING ERRCODE = 'check_violation';
    ELSIF EXISTS (SELECT FROM mailroom_attachments f WHERE f.message = NEW.message AND f.content_id = NEW.content_id) THEN
        RAISE EXCEPTION 'the attachment "%" has the content id of another', NEW.name USING ERRCODE = 'check_violation';
    ELSIF NEW.content IS NULL THEN
        RAISE EXCEPTION 'the attachment "%" has no content', NEW.name USING ERRCODE = 'not_null_violation';
    END IF;
    SELECT coalesce(max(f.place), 0) AS place, coalesce(sum(octet_length(f.content)), 0) AS size INTO v_others
    FROM mailroom_attachments f WHERE f.message = NEW.message;
    NEW.place := coalesce(NEW.place, v_others.place + 1);
    IF v_others.size + octet_length(NEW.content) > 26214400 THEN
        RAISE EXCEPTION 'the attachments of a message have more than 25 MiB' USING ERRCODE = 'check_violation',
            HINT = 'mail a link to the content';
    ELSIF NEW.place > 100 THEN
        RAISE EXCEPTION 'a message has at most 100 attachments' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END
$$;

-- Deletes the messages of accounts that are deleted, as the key of tokens does with tokens.
CREATE OR REPLACE FUNCTION trg_after_account_delete() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    DELETE FROM mailroom_messages m USING gone g WHERE m.account = g.id;
    RETURN NULL;
END
$$;
