-- Topics: what people can unsubscribe from. Creates, changes and retires them, and says who gets mails of which. Each change of a topic is
-- recorded as an operation. What a recipient does by the link of a mail is a report that came back (bounces.sql).

-- Returns why a message cannot have a topic, as mailroom_refuse() knows it; null if it can.
CREATE OR REPLACE FUNCTION mailroom_topic_problem(p_topic text) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_topic record;
BEGIN
    SELECT t.retired_at INTO v_topic FROM mailroom_topics t WHERE t.topic = p_topic;
    RETURN CASE WHEN NOT FOUND THEN 'no-topic' WHEN v_topic.retired_at IS NOT NULL THEN 'retired-topic' END;
END
$$;

-- Raises an error for what is no title of a topic.
CREATE OR REPLACE FUNCTION mailroom_check_titles(p_title text, p_titles jsonb) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_locale text;
BEGIN
    IF coalesce(btrim(p_title), '') = '' OR p_title ~ '[\x01-\x1f\x7f]' OR octet_length(p_title) > 200 THEN
        RAISE EXCEPTION 'the title of a topic is not a line of 1 to 200 octets' USING ERRCODE = 'check_violation';
    ELSIF jsonb_typeof(p_titles) <> 'object' OR octet_length(p_titles::text) > 16384 THEN
        RAISE EXCEPTION 'titles is not an object' USING ERRCODE = 'check_violation', HINT = 'write it as {"de": "Neues im Monat"}';
    END IF;
    SELECT e.key INTO v_locale FROM jsonb_each(p_titles) e
    WHERE e.key !~ '^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$' OR jsonb_typeof(e.value) <> 'string'
       OR btrim(e.value #>> '{}') = '' OR e.value #>> '{}' ~ '[\x01-\x1f\x7f]' OR octet_length(e.value #>> '{}') > 200 LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'the title for "%" is not a line of 1 to 200 octets, or that is no locale', left(v_locale, 100)
            USING ERRCODE = 'check_violation', HINT = 'write titles as {"de": "Neues im Monat", "de-AT": "..."}';
    END IF;
END
$$;

-- Records an operation on a topic.
CREATE OR REPLACE FUNCTION mailroom_record_topic(p_kind text, p_before jsonb, p_topic text) RETURNS void LANGUAGE sql AS $$
    SELECT mailroom_record_operation(p_kind, NULL, jsonb_strip_nulls(jsonb_build_object('topic', p_topic, 'before', p_before))
        || jsonb_build_object('after', (SELECT to_jsonb(t) FROM mailroom_topics t WHERE t.topic = p_topic)))
$$;

-- Creates a topic. title: as the page of preferences calls it; titles: the same by locale. profile: in whose mails the page shows it beside
-- their own; null: in all.
CREATE OR REPLACE FUNCTION mailroom_create_topic(topic text, title text, titles jsonb DEFAULT '{}', profile text DEFAULT NULL)
RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    IF (mailroom_create_topic.topic ~ '^[a-z][a-z0-9_-]{0,61}$') IS NOT TRUE THEN
        RAISE EXCEPTION '"%" is not a name of a topic', left(mailroom_create_topic.topic, 100)
            USING ERRCODE = 'check_violation', HINT = 'it has 1 to 62 small letters, digits, - and _, and begins with a letter';
    END IF;
    PERFORM mailroom_check_titles(mailroom_create_topic.title, coalesce(mailroom_create_topic.titles, '{}'));
    INSERT INTO mailroom_topics (topic, title, titles, profile)
    VALUES (mailroom_create_topic.topic, mailroom_create_topic.title, coalesce(mailroom_create_topic.titles, '{}'), mailroom_create_topic.profile)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the topic "%" exists', mailroom_create_topic.topic
            USING ERRCODE = 'unique_violation', HINT = 'mailroom_set_topic() changes it';
    END IF;
    PERFORM mailroom_record_topic('create topic', NULL, mailroom_create_topic.topic);
END
$$;

-- Returns the row of a topic, which the transaction holds from then on. Raises an error for an unknown one.
CREATE OR REPLACE FUNCTION mailroom_lock_topic(p_topic text) RETURNS mailroom_topics LANGUAGE plpgsql AS $$
DECLARE
    v_topic mailroom_topics;
BEGIN
    SELECT * INTO v_topic FROM mailroom_topics t WHERE t.topic = p_topic FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no topic "%"', left(p_topic, 100)
            USING ERRCODE = 'undefined_object', HINT = 'mailroom_create_topic() creates it';
    END IF;
    RETURN v_topic;
END
$$;

-- Changes a topic: an object of title, titles and profile, each as mailroom_create_topic() takes it. With retired false, messages may have
-- it again.
CREATE OR REPLACE FUNCTION mailroom_set_topic(topic text, changes jsonb) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_before mailroom_topics := mailroom_lock_topic(mailroom_set_topic.topic);
    v_after mailroom_topics;
    v_key text := (SELECT k FROM jsonb_object_keys(changes) k WHERE k NOT IN ('title', 'titles', 'profile', 'retired') LIMIT 1);
BEGIN
    IF v_key IS NOT NULL THEN
        RAISE EXCEPTION 'a topic has no setting "%"', left(v_key, 100)
            USING ERRCODE = 'invalid_parameter_value', HINT = 'settings: title, titles, profile, retired';
    END IF;
    v_after := jsonb_populate_record(v_before, changes - 'retired');
    v_after.titles := coalesce(nullif(v_after.titles, 'null'), '{}');
    PERFORM mailroom_check_titles(v_after.title, v_after.titles);
    UPDATE mailroom_topics t
    SET title = v_after.title, titles = v_after.titles, profile = v_after.profile,
        retired_at = CASE WHEN NOT changes ? 'retired' THEN t.retired_at
                          WHEN (changes->>'retired')::boolean THEN coalesce(t.retired_at, clock_timestamp()) END
    WHERE t.topic = v_before.topic;
    PERFORM mailroom_record_topic('set topic', to_jsonb(v_before), v_before.topic);
END
$$;

-- Refuses new messages of a topic from now on. What waits is sent, and its links work.
CREATE OR REPLACE FUNCTION mailroom_retire_topic(topic text) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_before mailroom_topics := mailroom_lock_topic(mailroom_retire_topic.topic);
BEGIN
    UPDATE mailroom_topics t SET retired_at = coalesce(t.retired_at, clock_timestamp()) WHERE t.topic = v_before.topic;
    PERFORM mailroom_record_topic('retire topic', to_jsonb(v_before), v_before.topic);
END
$$;

-- Returns the topic of the message of a token; null if it has none.
CREATE OR REPLACE FUNCTION mailroom_topic_of(p_token bigint) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT m.topic FROM tokens t JOIN mailroom_messages m ON m.id = t.message WHERE t.id = p_token);
END
$$;

-- Returns the tokens of p_tokens whose mail must not leave, and why. A sender asks this as the last before each attempt at a mail with
-- a topic, in a statement of its own: whatever has committed before that is seen.
CREATE OR REPLACE FUNCTION mailroom_withheld(p_tokens bigint[]) RETURNS TABLE (token bigint, reason text) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    IF NOT EXISTS (SELECT FROM mailroom_suppressions) THEN
        RETURN;
    END IF;
    RETURN QUERY
    SELECT u.id, concat_ws(' ', s.kind, s.reason, '(' || nullif(s.topic, '') || ')')
    FROM unnest(p_tokens) u (id), LATERAL (
        SELECT x.kind, x.reason, x.topic
        FROM tokens t JOIN mailroom_messages m ON m.id = t.message LEFT JOIN accounts a ON a.id = t.account
        JOIN mailroom_actions c ON c.action = t.action::text
        JOIN mailroom_suppressions x
            ON x.address = mailroom_canonical(coalesce(mailroom_address((m.recipients || m.cc || m.bcc)[t.recipient]), a.email))
           AND x.topic = ANY (ARRAY['', m.topic]) AND (x.topic <> '' OR NOT c.security)
        WHERE t.id = u.id ORDER BY x.topic LIMIT 1) s;
END
$$;

-- Returns the one form of an address, for the functions below. Raises an error for what is none.
CREATE OR REPLACE FUNCTION mailroom_required_address(p_address text) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF mailroom_is_mailbox(p_address) IS NOT TRUE THEN
        RAISE EXCEPTION '"%" is not an address', left(p_address, 100) USING ERRCODE = 'invalid_parameter_value',
            HINT = 'write it as ada@example.org';
    END IF;
    RETURN mailroom_canonical(mailroom_address(p_address));
END
$$;

-- Raises an error for a topic that there is not.
CREATE OR REPLACE FUNCTION mailroom_check_topic(p_topic text) RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM mailroom_topics t WHERE t.topic = p_topic) THEN
        RAISE EXCEPTION 'there is no topic "%"', left(p_topic, 100)
            USING ERRCODE = 'foreign_key_violation', HINT = 'mailroom_create_topic() creates it';
    END IF;
END
$$;

-- Records that an address has turned a topic off or on, and tells the application. p_token: by the link of whose mail; null: by none.
CREATE OR REPLACE FUNCTION mailroom_note_subscription(p_address text, p_topic text, p_is_on boolean, p_source text, p_token bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_queue text := CASE WHEN p_token IS NOT NULL THEN mailroom_queue_of(p_token) END;
BEGIN
    PERFORM mailroom_record_operation(CASE WHEN p_is_on THEN 'resubscribe' ELSE 'unsubscribe' END, v_queue, jsonb_strip_nulls(
        jsonb_build_object('address', p_address, 'topic', p_topic, 'source', p_source, 'token', p_token)));
    IF (SELECT h.outcomes_since FROM mailroom_home h) IS NOT NULL THEN
        INSERT INTO mailroom_outcomes (queue, token, state, address, topic)
        VALUES (v_queue, p_token, CASE WHEN p_is_on THEN 'resubscribed' ELSE 'unsubscribed' END, p_address, p_topic);
    END IF;
END
$$;

-- Stops the mails of a topic to an address: no attempt at one begins after this has committed. Returns false if they were stopped before.
-- SECURITY DEFINER, as the next two, so that an application needs no right on the tables.
CREATE OR REPLACE FUNCTION mailroom_unsubscribe(address text, topic text) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$
#variable_conflict use_column
DECLARE
    v_address text := mailroom_required_address(mailroom_unsubscribe.address);
BEGIN
    PERFORM mailroom_check_topic(mailroom_unsubscribe.topic);
    INSERT INTO mailroom_suppressions (address, topic, kind, reason, added_by)
    VALUES (v_address, mailroom_unsubscribe.topic, 'unsubscribed', 'sql', mailroom_caller())
    ON CONFLICT (address, topic) DO NOTHING;
    IF FOUND THEN
        PERFORM mailroom_note_subscription(v_address, mailroom_unsubscribe.topic, false, 'sql', NULL);
    END IF;
    RETURN FOUND;
END
$$;

-- Lets an address get the mails of a topic again that it has stopped itself. Returns false if it had not.
CREATE OR REPLACE FUNCTION mailroom_resubscribe(address text, topic text) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER AS $$
#variable_conflict use_column
DECLARE
    v_address text := mailroom_required_address(mailroom_resubscribe.address);
BEGIN
    PERFORM mailroom_check_topic(mailroom_resubscribe.topic);
    RETURN mailroom_allow_topic(v_address, mailroom_resubscribe.topic, 'sql', NULL);
END
$$;

-- True if the mails of a topic go to an address.
CREATE OR REPLACE FUNCTION mailroom_is_subscribed(address text, topic text) RETURNS boolean LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
#variable_conflict use_column
BEGIN
    PERFORM mailroom_check_topic(mailroom_is_subscribed.topic);
    RETURN NOT EXISTS (SELECT FROM mailroom_suppressions s
                       WHERE s.address = mailroom_required_address(mailroom_is_subscribed.address)
                         AND s.topic = ANY (ARRAY['', mailroom_is_subscribed.topic]));
END
$$;

-- Does the work of mailroom_resubscribe(). What an operator has stopped stays so.
CREATE OR REPLACE FUNCTION mailroom_allow_topic(p_address text, p_topic text, p_source text, p_token bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM mailroom_suppressions s
    WHERE s.address = p_address AND s.topic = p_topic AND s.topic <> '' AND s.kind IN ('unsubscribed', 'complaint');
    IF FOUND THEN
        PERFORM mailroom_note_subscription(p_address, p_topic, true, p_source, p_token);
    END IF;
    RETURN FOUND;
END
$$;

-- Returns the address that the mail of a token is for, in its one form; null if it is forgotten.
CREATE OR REPLACE FUNCTION mailroom_recipient_of(p_token bigint) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT mailroom_canonical(nullif(coalesce(mailroom_address((m.recipients || m.cc || m.bcc)[t.recipient]), a.email), ''))
            FROM tokens t JOIN mailroom_messages m ON m.id = t.message LEFT JOIN accounts a ON a.id = t.account WHERE t.id = p_token);
END
$$;

-- Returns a queue that has mailed a token, or that takes it.
CREATE OR REPLACE FUNCTION mailroom_queue_of(p_token bigint) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce(
        (SELECT d.queue FROM mailroom_deliveries d WHERE d.queue IN (SELECT j.job_type FROM jobs j) AND d.token = p_token
         ORDER BY d.last_at DESC LIMIT 1),
        (SELECT j.job_type FROM jobs j, tokens t
         WHERE t.id = p_token AND mailroom_takes(mailroom_queue_actions(j.job_type), t.action) ORDER BY j.job_type LIMIT 1));
END
$$;

-- Returns the topics that the recipient of a mail may choose, that of the mail first: no row for a mail without a topic, and for one that
-- is not known any more. SECURITY DEFINER, as the next, for what serves the links of mails, which has checked a signature.
CREATE OR REPLACE FUNCTION mailroom_preferences(p_token bigint)
RETURNS TABLE (topic text, title text, titles jsonb, is_on boolean, is_own boolean, locale text) LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
#variable_conflict use_column
DECLARE
    v_address text := mailroom_recipient_of(p_token);
    v_mail record;
BEGIN
    SELECT m.topic, m.locale, coalesce(m.profile, 'default') AS profile INTO v_mail
    FROM tokens t JOIN mailroom_messages m ON m.id = t.message WHERE t.id = p_token;
    IF v_address IS NULL OR v_mail.topic IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY
    SELECT t.topic, t.title, t.titles, NOT EXISTS (
               SELECT FROM mailroom_suppressions s WHERE s.address = v_address AND s.topic = t.topic), t.topic = v_mail.topic, v_mail.locale
    FROM mailroom_topics t
    WHERE t.topic = v_mail.topic OR t.retired_at IS NULL AND coalesce(t.profile, v_mail.profile) = v_mail.profile
    ORDER BY t.topic = v_mail.topic DESC, t.title;
END
$$;

-- Turns topics off and on for the recipient of a mail, as he has chosen by its link: p_source says how. Those that he may not choose are
-- ignored. Returns how many have changed; null if the mail is not known any more. Each that is turned off is a report that came back.
CREATE OR REPLACE FUNCTION mailroom_prefer(p_token bigint, p_on text[], p_off text[], p_source text) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    v_address text := mailroom_recipient_of(p_token);
    v_changed integer := 0;
    v_bounces bigint[];
    r record;
BEGIN
    IF v_address IS NULL THEN
        RETURN NULL;
    END IF;
    FOR r IN SELECT p.topic FROM mailroom_preferences(p_token) p WHERE p.topic = ANY (p_on) AND NOT p.is_on ORDER BY p.topic LOOP
        v_changed := v_changed + mailroom_allow_topic(v_address, r.topic, p_source, p_token)::integer;
    END LOOP;
    WITH added AS (
        INSERT INTO mailroom_bounces (digest, place, source, queue, token, address, kind, reason, topic)
        SELECT sha256(convert_to(concat_ws(E'\n', 'preference', p_token, p.topic, clock_timestamp()), 'UTF8')), 1, p_source,
               coalesce(mailroom_queue_of(p_token), 'mailroom'), p_token, v_address, 'unsubscribed', 'unsubscribed', p.topic
        FROM mailroom_preferences(p_token) p WHERE p.topic = ANY (p_off) AND p.is_on ORDER BY p.topic
        RETURNING id)
    SELECT coalesce(array_agg(a.id), '{}') INTO v_bounces FROM added a;
    PERFORM mailroom_follow_bounces(v_bounces, array_fill(true, ARRAY[cardinality(v_bounces)]));
    PERFORM mailroom_tell_bounces(v_bounces);
    RETURN v_changed + cardinality(v_bounces);
END
$$;

-- True if the attempt at the mail of a token that was accepted at p_at had begun when its reader left the topic.
CREATE OR REPLACE FUNCTION mailroom_was_under_way(p_token bigint, p_address text, p_at timestamptz) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM tokens t JOIN mailroom_messages m ON m.id = t.message
        JOIN mailroom_suppressions s ON s.address = mailroom_canonical(p_address) AND s.topic = m.topic
        WHERE t.id = p_token AND s.added_at <= p_at AND s.added_at >= m.created_at);
END
$$;
