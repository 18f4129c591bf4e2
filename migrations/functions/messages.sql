-- Messages: what an INSERT does. What it refuses is in refusals.sql.

-- Returns the address of a mailbox: ada@example.org of 'Ada <ada@example.org>'. Inlined, as the index on it is written.
CREATE OR REPLACE FUNCTION mailroom_address(p_mailbox text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN rtrim(split_part(p_mailbox, '<', -1), '>');

-- Returns the SHA-256 of what an idempotency key stands for. Neither send_after nor expires_at belongs to it: a statement
-- that is run again often computes them anew.
CREATE OR REPLACE FUNCTION mailroom_fingerprint(p_message mailroom_messages, p_attachments jsonb) RETURNS bytea
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
    IF p_message.raw IS NOT NULL THEN
        RETURN mailroom_raw_fingerprint(p_message.action, p_message.account, p_message.recipients, p_message.return_path,
                                        p_message.profile, p_message.reference, p_message.topic);
    END IF;
    RETURN sha256(convert_to(jsonb_build_array(
        p_message.action, p_message.account, p_message.recipients, p_message.cc, p_message.bcc, p_message.sender,
        p_message.reply_to, p_message.headers, p_message.template, p_message.locale, p_message.data, p_message.subject,
        p_message.text, p_message.html, p_message.profile, p_message.reference, p_attachments, p_message.topic)::text, 'UTF8'));
END
$$;

-- Returns what is kept of the options of a message, null for nothing: notify, keep_return_path, tags, batch, and the traceparent, which is
-- p_session if the options have none and that is one.
CREATE OR REPLACE FUNCTION mailroom_kept_options(p_options jsonb, p_session text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_notify boolean := mailroom_option(p_options, 'notify');
    v_own jsonb := nullif(p_options->'traceparent', 'null');
    v_traceparent text := coalesce(mailroom_required_traceparent(v_own #>> '{}'), mailroom_traceparent(p_session));
BEGIN
    PERFORM mailroom_check_tags(nullif(p_options->'tags', 'null'));
    RETURN nullif(CASE WHEN v_notify THEN '{"notify": true}'::jsonb ELSE '{}' END
                  || CASE WHEN mailroom_option(p_options, 'keep_return_path') THEN '{"keep_return_path": true}'::jsonb ELSE '{}' END
                  || CASE WHEN v_traceparent IS NULL THEN '{}' ELSE jsonb_build_object('traceparent', v_traceparent) END
                  || jsonb_strip_nulls(jsonb_build_object('tags', nullif(p_options->'tags', '{}'), 'batch', left(p_options->>'batch', 64))), '{}');
END
$$;

-- Raises an error unless p_tags is an object of short words.
CREATE OR REPLACE FUNCTION mailroom_check_tags(p_tags jsonb) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_name text;
BEGIN
    IF p_tags IS NULL THEN
        RETURN;
    ELSIF jsonb_typeof(p_tags) <> 'object' OR (SELECT count(*) > 75 FROM jsonb_object_keys(p_tags)) THEN
        RAISE EXCEPTION 'the option "tags" is not an object of at most 75 tags' USING ERRCODE = 'invalid_parameter_value',
            HINT = 'write it as {"tags": {"category": "welcome"}}';
    END IF;
    SELECT t.key INTO v_name FROM jsonb_each(p_tags) t
    WHERE concat(t.key, '.', t.value #>> '{}') !~ '^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$' OR jsonb_typeof(t.value) <> 'string'
       OR greatest(length(t.key), length(t.value #>> '{}')) > 256 LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'the tag "%" is not a name and a value of 1 to 256 letters, digits, - and _', left(v_name, 100)
            USING ERRCODE = 'invalid_parameter_value', HINT = 'write it as {"tags": {"category": "welcome"}}';
    END IF;
END
$$;

-- Frees the key of a message whose mail never left, and never will. False if a message has the key that lives.
CREATE OR REPLACE FUNCTION mailroom_free_key(p_owner bigint, p_key text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_old mailroom_messages;
BEGIN
    SELECT * INTO v_old FROM mailroom_messages m WHERE m.owner = p_owner AND m.idempotency_key = p_key AND m.replaced_at IS NULL;
    IF NOT FOUND THEN
        RETURN true;
    ELSIF NOT mailroom_has_died(v_old) THEN
        RETURN false;
    END IF;
    UPDATE mailroom_messages m SET replaced_at = clock_timestamp() WHERE m.id = v_old.id AND m.replaced_at IS NULL;
    RETURN true;
END
$$;

-- Refuses the owner of another before the index tells whether that one has the key, and frees a key. Looking for it would make
-- transactions that are serializable fail: there mailroom_send() frees it.
CREATE OR REPLACE FUNCTION trg_before_keyed_message() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    v_owner bigint := mailroom_true_owner();
BEGIN
    IF NEW.owner IS DISTINCT FROM v_owner THEN
        PERFORM mailroom_check_owners(ARRAY[mailroom_caller()::text], ARRAY[NEW.owner]);
    END IF;
    IF current_setting('transaction_isolation') <> 'serializable' THEN
        PERFORM mailroom_free_key(v_owner, NEW.idempotency_key);
    END IF;
    RETURN NEW;
END
$$;

-- Refuses a change of what is in a message, but for one that was loaded from another database: an anonymizer changes it.
CREATE OR REPLACE FUNCTION trg_before_message_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'mailroom_attachments' THEN
        IF EXISTS (SELECT FROM mailroom_messages m WHERE m.id = OLD.message AND m.home = mailroom_home_number()) THEN
            RAISE EXCEPTION 'what is in message % cannot be changed', OLD.message USING ERRCODE = 'object_not_in_prerequisite_state',
                HINT = 'mailroom_cancel() it and send another';
        END IF;
    ELSIF OLD.home = mailroom_home_number() AND (OLD.action, OLD.account, OLD.recipients, OLD.cc, OLD.bcc, OLD.sender, OLD.reply_to, OLD.headers, OLD.template, OLD.locale, OLD.data,
        OLD.subject, OLD.text, OLD.html, OLD.profile, OLD.topic, OLD.raw, OLD.return_path)
       IS DISTINCT FROM
       (NEW.action, NEW.account, NEW.recipients, NEW.cc, NEW.bcc, NEW.sender, NEW.reply_to, NEW.headers, NEW.template, NEW.locale, NEW.data,
        NEW.subject, NEW.text, NEW.html, NEW.profile, NEW.topic, NEW.raw, NEW.return_path) THEN
        RAISE EXCEPTION 'what is in message % cannot be changed', OLD.id USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'mailroom_cancel() it and send another, or send it again with its idempotency_key and options => ''{"replace": true}''';
    END IF;
    RETURN NEW;
END
$$;

-- Gives explicit nulls their defaults, and sets what applications do not: enqueued_by, created_at, fingerprint and the times
-- after those. The owner of the table may set them: mailroom_send_row() does, and a restore.
CREATE OR REPLACE FUNCTION trg_before_message_insert() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_is_owner boolean;
BEGIN
    -- Most rows have the defaults of what mailroom sets.
    IF num_nonnulls(NEW.action, NEW.home) = 2 AND NEW.created_at = now() AND NEW.enqueued_by = mailroom_caller()
       AND num_nonnulls(NEW.idempotency_key, NEW.headers, NEW.options, NEW.fingerprint, NEW.replaced_at, NEW.cancelled_at, NEW.erased_at) = 0
       AND (jsonb_typeof(NEW.data) = 'null') IS NOT TRUE AND (octet_length(NEW.reference) > 1024) IS NOT TRUE
       AND (NEW.recipients IS NOT NULL OR NEW.account IS NOT NULL) THEN
        RETURN NEW;
    END IF;
    v_is_owner := current_user = (SELECT pg_get_userbyid(c.relowner) FROM pg_class c WHERE c.oid = TG_RELID);
    NEW.action := coalesce(NEW.action, 'message');
    IF NOT v_is_owner THEN
        NEW.created_at := NULL; NEW.enqueued_by := NULL; NEW.fingerprint := NULL;
        NEW.replaced_at := NULL; NEW.cancelled_at := NULL; NEW.erased_at := NULL;
    END IF;
    NEW.created_at := coalesce(NEW.created_at, now());
    NEW.enqueued_by := coalesce(NEW.enqueued_by, mailroom_caller());
    NEW.home := coalesce(NEW.home, mailroom_home_number());
    -- A message without recipients is for its account. Who is in copy only has a mail of his own, too.
    IF NEW.recipients IS NULL AND NEW.account IS NULL AND coalesce(NEW.cc, NEW.bcc) IS NOT NULL THEN
        NEW.recipients := '{}';
    END IF;
    IF jsonb_typeof(NEW.data) = 'null' THEN
        NEW.data := NULL;
    END IF;
    IF jsonb_typeof(NEW.headers) = 'null' THEN
        NEW.headers := NULL;
    ELSIF NEW.headers IS NOT NULL THEN
        NEW.headers := mailroom_checked_headers(NEW.headers, NEW.sender);
    END IF;
    -- Before an index refuses them.
    IF greatest(octet_length(NEW.reference), octet_length(NEW.idempotency_key)) > 1024 THEN
        PERFORM mailroom_refuse('long', NEW, NULL);
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
-- reading of the clock decides which messages wait: with two, a message could be in the schedule and have a token. The tokens are made
-- of the transition table: reading the messages back by an index would make serializable transactions fail.
-- SECURITY DEFINER, so that a role that may insert messages needs no right on tokens. Who chooses the recipient of a
-- signed link can act for its owner: so a mail to an account goes to the address of the account only, the tokens of
-- accounts are made by nobody here, and an action may be reserved to a role. Rows that were loaded from another database are
-- kept as they are: they were mailed there, or wait there.
CREATE OR REPLACE FUNCTION trg_after_message_insert() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_role oid := mailroom_own_role();
    v_owner bigint;
    v_added record;
    v_refused text;
    v_has_later boolean := false;
    v_has_present boolean := true;
BEGIN
    -- Most messages need none of the checks below: at once to one plain address, with words or a template and little data, of an action
    -- that asks for nothing. An expression takes time of each statement, also where it is not evaluated.
    SELECT count(*) AS count, min(m.id) AS id, min(m.owner) AS first_owner, max(m.owner) AS last_owner,
           (SELECT o.owner FROM mailroom_owners o WHERE o.role = v_role AND o.name = pg_get_userbyid(v_role)::text) AS owner,
           EXISTS (SELECT FROM mailroom_limits l WHERE l.role IN (session_user::text, min(m.enqueued_by), pg_get_userbyid(v_role)::text)) AS has_limit,
           min(m.action) AS action, min(mailroom_expiry(NULL, a.lifetime)) AS expires_at,
           -- A row of which it is unknown is not plain: bool_and() ignores nulls.
           bool_and((num_nonnulls(a.retired_at, a.producer, a.account_status, a.path, m.account, m.cc, m.bcc, m.sender, m.reply_to,
                                 m.send_after, m.expires_at, m.options->>'traceparent', m.topic) = 0
                    AND a.number > 2 AND m.home = mailroom_home_number() AND cardinality(m.recipients) = 1
                    AND mailroom_are_mailboxes(CASE WHEN m.return_path <> '' THEN m.recipients || m.return_path ELSE m.recipients END)
                    AND octet_length(concat(m.recipients[1], m.subject, m.template, m.locale, m.profile, m.reference, m.idempotency_key, m.return_path)) <= 1024
                    AND concat(m.recipients[1], m.subject, m.template, m.locale, m.profile, m.reference, m.idempotency_key, m.return_path) !~ '[\x01-\x1f\x7f]'
                    AND CASE WHEN m.raw IS NOT NULL
                        THEN num_nonnulls(m.template, m.locale, m.data, m.text, m.html, m.headers) = 0
                             AND (m.return_path <> mailroom_address(m.return_path)) IS NOT TRUE AND mailroom_raw_problem(m.raw) IS NULL
                        WHEN num_nonnulls(m.return_path, m.options) > 0 THEN false
                        WHEN m.template IS NULL
                        THEN m.data IS NULL AND m.subject IS NOT NULL AND greatest(octet_length(m.text), octet_length(m.html)) <= 13107200
                        ELSE num_nonnulls(m.subject, m.text, m.html) = 0 AND m.template ~ '^[A-Za-z0-9_][A-Za-z0-9_-]{0,99}$'
                             AND (m.data IS NULL OR jsonb_typeof(m.data) = 'object' AND octet_length(m.data::text) <= 128
                                  AND NOT m.data ?| '{action,email,code,expires_at,expires_in,link,token}')
                        END) IS TRUE) AS are_plain
    INTO v_added
    FROM added m LEFT JOIN mailroom_actions a ON a.action = m.action;
    IF v_added.count = 0 THEN
        RETURN NULL;
    ELSIF NOT v_added.are_plain THEN
        SELECT min(CASE WHEN p.problem IS NOT NULL THEN lpad(m.id::text, 20, '0') || ' ' || p.problem END) AS refused,
               bool_or(m.send_after > v_now AND m.home = mailroom_home_number()) AS has_later,
               bool_or((m.send_after > v_now) IS NOT TRUE AND m.home = mailroom_home_number()) AS has_present
        INTO v_refused, v_has_later, v_has_present
        FROM added m LEFT JOIN mailroom_actions a ON a.action = m.action,
        LATERAL (SELECT CASE
            WHEN m.home <> mailroom_home_number() THEN NULL
            WHEN a.action IS NULL THEN 'unknown'
            WHEN a.number <= 2 THEN 'built-in'
            WHEN a.retired_at IS NOT NULL THEN 'retired'
            WHEN a.producer IS NOT NULL AND NOT pg_has_role(m.enqueued_by::name, a.producer, 'MEMBER') THEN 'reserved'
            WHEN m.topic IS NOT NULL AND mailroom_topic_problem(m.topic) IS NOT NULL THEN mailroom_topic_problem(m.topic)
            WHEN a.account_status IS NOT NULL AND m.account IS NULL THEN 'accountless'
            WHEN m.account IS NOT NULL AND NOT mailroom_has_account(m.account) THEN 'no-account'
            WHEN (a.account_status IS NOT NULL OR (a.path IS NOT NULL AND m.account IS NOT NULL))
                 AND coalesce(m.recipients, m.cc, m.bcc) IS NOT NULL THEN 'misdirected'
            WHEN m.recipients IS NULL AND (m.account IS NULL OR coalesce(m.cc, m.bcc) IS NOT NULL)
                 OR cardinality(m.recipients || m.cc || m.bcc) = 0 THEN 'no-recipient'
            WHEN cardinality(m.recipients || m.cc || m.bcc) > CASE WHEN m.raw IS NULL THEN 100 ELSE 1000 END THEN 'too-many'
            WHEN greatest(octet_length(m.recipients[1]), octet_length(m.sender), octet_length(m.reply_to), octet_length(m.reference),
                          octet_length(m.idempotency_key), octet_length(m.locale), octet_length(m.profile), octet_length(m.return_path)) > 1024
                 OR octet_length(m.subject) > 8192 OR octet_length(array_to_string(m.recipients || m.cc || m.bcc, ''))
                    > CASE WHEN m.raw IS NULL THEN 65536 ELSE 262144 END THEN 'long'
            WHEN NOT mailroom_are_mailboxes(nullif(m.recipients || m.cc || m.bcc || array_remove(ARRAY[m.sender, nullif(m.return_path, '')], NULL)
                                                    || CASE WHEN m.reply_to IS NOT NULL THEN mailroom_mailboxes_of(m.reply_to) END, '{}'))
                THEN 'mailbox'
            WHEN concat(m.subject, m.template, m.locale, m.profile, m.reference, replace(m.idempotency_key, E'\x1f', ''), m.sender, m.reply_to, m.return_path,
                        array_to_string(m.recipients || m.cc || m.bcc, '')) ~ '[\x01-\x1f\x7f]' THEN 'control'
            -- A row of the past is loaded, and not asked for.
            WHEN m.send_after IN ('infinity', '-infinity') OR m.expires_at <= m.send_after
                 OR m.expires_at < date_trunc('second', v_now) + interval '1 second' AND m.created_at >= now() THEN 'time'
            WHEN m.template !~ '^[A-Za-z0-9_][A-Za-z0-9_-]{0,99}$' THEN 'template'
            WHEN jsonb_typeof(m.data) <> 'object' THEN 'data'
            WHEN (octet_length(m.data::text) > 128 OR m.data ?| '{action,email,code,expires_at,expires_in,link,token}')
                 AND mailroom_data_problem(m.data, m.recipients || m.cc || m.bcc, m.action, a.path) IS NOT NULL THEN 'data-limit'
            WHEN m.topic IS NOT NULL AND m.data ?| '{unsubscribe_link,preferences_link}' THEN 'data-topic'
            WHEN m.raw IS NULL AND (m.return_path IS NOT NULL OR m.options ? 'keep_return_path') OR m.return_path <> mailroom_address(m.return_path) THEN 'return-path'
            WHEN m.raw IS NOT NULL THEN CASE
                WHEN num_nonnulls(m.template, m.locale, m.data, m.text, m.html, m.headers, m.cc, m.bcc, m.sender, m.reply_to) > 0 THEN 'raw-both'
                WHEN a.path IS NOT NULL THEN 'no-link'
                WHEN mailroom_raw_problem(m.raw) IS NOT NULL THEN 'raw' END
            WHEN m.subject IS NULL AND m.text IS NULL AND m.html IS NULL THEN
                CASE WHEN coalesce(m.template, a.template) IS NULL THEN 'empty' END
            -- A subject takes the place of that of the template.
            WHEN m.text IS NULL AND m.html IS NULL AND coalesce(m.template, a.template) IS NOT NULL THEN NULL
            WHEN m.template IS NOT NULL OR m.data IS NOT NULL THEN 'both'
            WHEN a.path IS NOT NULL THEN 'no-link'
            WHEN m.subject IS NULL THEN 'no-subject'
            WHEN m.text IS NULL AND m.html IS NULL THEN 'no-body'
            WHEN coalesce(octet_length(m.text), 0) + coalesce(octet_length(m.html), 0) > 26214400 THEN 'large'
            END) p (problem);
        IF v_refused IS NOT NULL THEN
            PERFORM mailroom_refuse(split_part(v_refused, ' ', 2), m, CASE WHEN v_added.count > 1 THEN format('row %s of %s%s',
                (SELECT count(*) FROM added o WHERE o.id <= m.id), v_added.count,
                coalesce(': reference ' || to_json(m.reference), ': idempotency_key ' || to_json(m.idempotency_key))) END)
            FROM mailroom_messages m WHERE m.id = split_part(v_refused, ' ', 1)::bigint;
        END IF;
    END IF;
    IF (v_added.first_owner, v_added.last_owner) IS DISTINCT FROM (v_added.owner, v_added.owner) THEN
        v_owner := mailroom_number_of(v_role);
        PERFORM mailroom_check_owners(array_agg(o.enqueued_by), array_agg(o.owner))
        FROM (SELECT DISTINCT m.enqueued_by, m.owner FROM added m WHERE m.owner IS DISTINCT FROM v_owner) o HAVING count(*) > 0;
    END IF;
    IF v_added.has_limit THEN
        PERFORM mailroom_keep_limits(ARRAY[session_user::text, min(m.enqueued_by), pg_get_userbyid(v_role)::text],
                                     sum(greatest(cardinality(m.recipients || m.cc || m.bcc), 1)))
        FROM added m WHERE m.home = mailroom_home_number() HAVING count(*) > 0;
    END IF;
    IF v_added.are_plain AND v_added.count = 1 THEN
        INSERT INTO tokens (message, recipient, action, secret, code, expires_at)
        VALUES (v_added.id, 1, v_added.action::token_action, NULL, NULL, v_added.expires_at);
        RETURN NULL;
    ELSIF v_added.are_plain THEN
        INSERT INTO tokens (message, recipient, action, secret, code, expires_at)
        SELECT m.id, 1, m.action::token_action, NULL, NULL, mailroom_expiry(NULL, a.lifetime)
        FROM added m JOIN mailroom_actions a ON a.action = m.action
        ORDER BY m.id;
        RETURN NULL;
    END IF;
    IF v_has_later THEN
        INSERT INTO mailroom_schedule (send_after, message) SELECT m.send_after, m.id FROM added m
        WHERE m.send_after > v_now AND m.home = mailroom_home_number();
        PERFORM mailroom_wake_for((SELECT min(m.send_after) FROM added m WHERE m.send_after > v_now AND m.home = mailroom_home_number()));
        -- Their tokens are made by another transaction. Those that are made here get the trace of this one by a trigger of tokens.
        IF current_setting('mailroom.traceparent', true) <> '' THEN
            UPDATE mailroom_messages m SET options = mailroom_kept_options(m.options, current_setting('mailroom.traceparent', true))
            FROM added a WHERE a.id = m.id AND a.send_after > v_now;
        END IF;
    END IF;
    IF v_has_present THEN
        INSERT INTO tokens (message, recipient, account, action, secret, code, expires_at, traceparent)
        SELECT m.id, m.place, m.account, m.action::token_action,
               CASE WHEN m.path IS NOT NULL THEN mailroom_random_secret() END,
               CASE WHEN m.has_code THEN mailroom_random_code() END,
               m.expires_at, m.traceparent
        FROM (SELECT m.id, unnest(mailroom_places(m.recipients || m.cc || m.bcc)) AS place, m.account, m.action, a.path, a.has_code,
                     mailroom_expiry(m.expires_at, a.lifetime) AS expires_at, m.options->>'traceparent' AS traceparent
              FROM added m JOIN mailroom_actions a ON a.action = m.action
              WHERE (m.send_after > v_now) IS NOT TRUE AND m.home = mailroom_home_number()) m
        ORDER BY m.id, m.place;
    END IF;
    RETURN NULL;
END
$$;

-- Refuses an attachment to a message of another transaction or role; numbers it.
CREATE OR REPLACE FUNCTION trg_before_attachment_insert() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM mailroom_messages m
                   WHERE m.id = NEW.message AND m.created_at = now() AND m.enqueued_by = mailroom_caller()) THEN
        RAISE EXCEPTION 'this transaction has not inserted the message %', NEW.message USING ERRCODE = 'foreign_key_violation',
            HINT = 'insert a message and its attachments in one transaction, or use mailroom_send()';
    ELSIF EXISTS (SELECT FROM mailroom_messages m WHERE m.id = NEW.message AND m.raw IS NOT NULL) THEN
        RAISE EXCEPTION 'a raw mail has its attachments in itself' USING ERRCODE = 'check_violation';
    END IF;
    NEW.place := coalesce(NEW.place, (SELECT coalesce(max(f.place), 0) + 1 FROM mailroom_attachments f WHERE f.message = NEW.message));
    RETURN NEW;
END
$$;

-- Refuses what cannot be a file of a mail.
CREATE OR REPLACE FUNCTION trg_before_attachment_checked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.name IS NULL OR NEW.name ~ '[\x01-\x1f\x7f/\\]' OR NEW.name = '' OR octet_length(NEW.name) > 255 THEN
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
    ELSIF NEW.content IS NULL THEN
        RAISE EXCEPTION 'the attachment "%" has no content', NEW.name USING ERRCODE = 'not_null_violation';
    END IF;
    RETURN NEW;
END
$$;

-- Refuses what the attachments of a message cannot be together. Those of mailroom_send() are in one statement, and the message has no others.
CREATE OR REPLACE FUNCTION trg_after_attachment_insert() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    v_is_whole boolean := current_setting('mailroom.attaching', true) <> '';
    v_all record;
BEGIN
    SELECT f.size > 26214400 AS is_large, f.twice INTO v_all
    FROM (SELECT sum(octet_length(f.content)) AS size, count(*) AS count,
                 max(f.name) FILTER (WHERE f.nth > 1 AND f.content_id IS NOT NULL) AS twice
          FROM (SELECT f.*, row_number() OVER (PARTITION BY f.message, f.content_id ORDER BY f.place) AS nth
                FROM (SELECT a.message, a.place, a.name, a.content_id, a.content FROM added a WHERE v_is_whole
                      UNION ALL SELECT o.message, o.place, o.name, o.content_id, o.content FROM mailroom_attachments o
                      WHERE NOT v_is_whole AND o.message IN (SELECT a.message FROM added a)) f) f
          GROUP BY f.message) f
    WHERE f.size > 26214400 OR f.count > 100 OR f.twice IS NOT NULL LIMIT 1;
    IF NOT FOUND THEN
        RETURN NULL;
    ELSIF v_all.twice IS NOT NULL THEN
        RAISE EXCEPTION 'the attachment "%" has the content id of another', v_all.twice USING ERRCODE = 'check_violation';
    ELSIF v_all.is_large THEN
        RAISE EXCEPTION 'the attachments of a message have more than 25 MiB' USING ERRCODE = 'check_violation',
            HINT = 'mail a link to the content';
    END IF;
    RAISE EXCEPTION 'a message has at most 100 attachments' USING ERRCODE = 'check_violation';
END
$$;

-- Deletes the attachments of messages that are deleted.
CREATE OR REPLACE FUNCTION trg_after_message_delete() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        -- The statement may truncate both.
        DELETE FROM mailroom_attachments;
    ELSE
        DELETE FROM mailroom_attachments f USING gone g WHERE f.message = g.id;
    END IF;
    RETURN NULL;
END
$$;

-- Deletes the messages of accounts that are deleted, as the key of tokens does with tokens. One that a row of the application refers to
-- stays, without content and addresses.
CREATE OR REPLACE FUNCTION trg_after_account_delete() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    v_kept bigint[];
BEGIN
    SELECT d.kept INTO v_kept
    FROM mailroom_delete_rows('mailroom_messages', ARRAY(SELECT m.id FROM gone g JOIN mailroom_messages m ON m.account = g.id)) d;
    DELETE FROM mailroom_schedule s USING mailroom_messages m WHERE m.id = ANY (v_kept) AND s.send_after = m.send_after AND s.message = m.id;
    PERFORM mailroom_erase_message(k, ARRAY(SELECT generate_series(1, 100)::smallint), true, '{}', true) FROM unnest(v_kept) k;
    RETURN NULL;
END
$$;
