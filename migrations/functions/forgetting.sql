-- What is removed of messages: their content once they can be sent no more, and an address for good. It deletes
-- no message, token or delivery (prune.sql does), leaves the record that something was sent, and does not touch the tables of
-- applications.

-- Removes the content of messages that ended before p_before (seconds since 1970): subject, text, HTML, raw mail, data, headers
-- and attachments. The record of who got what stays. Works in steps as those of prune.sql do, whose columns it returns.
--
-- A message has ended if none of its tokens can be sent any more, as they expired or were consumed; or if each has a final
-- outcome and no link that may be of use: then its tokens end now, so that no rewind asks for a mail that is gone.
CREATE OR REPLACE FUNCTION mailroom_erase_contents(p_after bigint, p_last bigint, p_last_token bigint, p_before bigint,
    p_rows integer, p_limit integer, p_dry_run boolean, OUT old_rows integer, OUT removed integer, OUT reached bigint)
LANGUAGE plpgsql AS $$
DECLARE
    v_old bigint[];
    v_now bigint := floor(extract(epoch FROM clock_timestamp()));
BEGIN
    WITH bounds AS MATERIALIZED (SELECT * FROM mailroom_prune_bounds(p_last_token)),
    looked AS MATERIALIZED (
        SELECT m.id, m.action, m.send_after,
               coalesce(m.replaced_at, m.cancelled_at, greatest(m.send_after, m.created_at)) < to_timestamp(p_before) AS is_old,
               m.created_at >= to_timestamp(p_before) AS is_new
        FROM mailroom_messages m WHERE m.id > p_after AND m.id <= p_last ORDER BY m.id LIMIT p_rows),
    old AS MATERIALIZED (
        SELECT l.id FROM looked l JOIN mailroom_messages m ON m.id = l.id
        WHERE l.is_old
          AND (num_nonnulls(m.subject, m.text, m.html, m.raw, m.data, m.headers) > 0
               OR EXISTS (SELECT FROM mailroom_attachments f WHERE f.message = l.id))
          AND mailroom_has_ended(l.id, l.send_after, '{}', (SELECT last FROM bounds), (SELECT held FROM bounds), p_before)
        LIMIT p_limit)
    SELECT coalesce(array_agg(o.id), '{}'), CASE WHEN count(*) = p_limit THEN max(o.id) ELSE (
        SELECT CASE WHEN count(*) < p_rows OR NOT bool_and(l.is_new) THEN max(l.id) END FROM looked l) END
    INTO v_old, reached FROM old o;
    old_rows := cardinality(v_old); removed := old_rows;
    IF NOT p_dry_run THEN
        WITH locked AS MATERIALIZED (
            SELECT k.id FROM unnest(v_old) o (id) JOIN mailroom_messages k ON k.id = o.id FOR UPDATE OF k SKIP LOCKED)
        SELECT coalesce(array_agg(l.id), '{}') INTO v_old FROM locked l;
        UPDATE tokens t SET expires_at = v_now
        WHERE t.message = ANY (v_old) AND t.consumed_at IS NULL AND t.expires_at > v_now;
        DELETE FROM mailroom_attachments f WHERE f.message = ANY (v_old);
        UPDATE mailroom_messages m
        SET subject = NULL, text = NULL, html = NULL, raw = NULL, data = NULL, headers = NULL, erased_at = coalesce(m.erased_at, clock_timestamp())
        WHERE m.id = ANY (v_old);
        removed := cardinality(v_old);
    END IF;
END
$$;

-- True if a message makes no mail any more, for recipients apart from those at p_without: it ended before p_before. p_last and
-- p_held are those of mailroom_prune_bounds().
CREATE OR REPLACE FUNCTION mailroom_has_ended(p_message bigint, p_send_after timestamptz, p_without smallint[], p_last bigint,
    p_held int8multirange, p_before bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN NOT EXISTS (SELECT FROM mailroom_schedule s WHERE s.send_after = p_send_after AND s.message = p_message) AND NOT EXISTS (
        SELECT FROM tokens t
        WHERE t.message = p_message AND (t.recipient = ANY (p_without)) IS NOT TRUE
          AND (p_held @> t.id OR NOT (mailroom_token_is_old(t.consumed_at, t.expires_at, p_before)
                                      OR (t.id <= p_last AND mailroom_is_settled(t, p_before)))));
END
$$;

-- True if a token has a final outcome of before p_before, waits in no queue, and its action has no link.
CREATE OR REPLACE FUNCTION mailroom_is_settled(p_token tokens, p_before bigint) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT coalesce(bool_and(d.state <> 'deferred' AND d.last_at < to_timestamp(p_before)), false)
           AND NOT EXISTS (SELECT FROM mailroom_actions a WHERE a.action = p_token.action::text AND a.path IS NOT NULL)
    FROM mailroom_deliveries d WHERE d.token = p_token.id AND d.queue IN (SELECT j.job_type FROM jobs j)
$$;

-- Returns p_text with '(forgotten)' in place of each of p_addresses, whatever case it has, but not in a longer address.
CREATE OR REPLACE FUNCTION mailroom_without_addresses(p_text text, p_addresses text[]) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_address text;
BEGIN
    FOREACH v_address IN ARRAY p_addresses LOOP
        p_text := regexp_replace(p_text, '(?<![[:alnum:]._+-])' || regexp_replace(v_address, '([^[:alnum:]@])', '\\\1', 'g')
                                         || '(?![[:alnum:]-])', '(forgotten)', 'gi');
    END LOOP;
    RETURN p_text;
END
$$;

-- True if p_text has one of p_addresses, which are in lower case, and not in a longer address.
CREATE OR REPLACE FUNCTION mailroom_mentions(p_text text, p_addresses text[]) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_lower text := lower(p_text);
    v_address text;
BEGIN
    FOREACH v_address IN ARRAY p_addresses LOOP
        IF strpos(v_lower, v_address) > 0 AND mailroom_without_addresses(p_text, p_addresses) <> p_text THEN
            RETURN true;
        END IF;
    END LOOP;
    RETURN false;
END
$$;

-- Returns the messages with one of p_addresses, which are mailroom_canonical(), or with p_reference: the places of the recipients
-- that are meant, over to, cc and bcc, and whether these are all.
CREATE OR REPLACE FUNCTION mailroom_messages_of(p_addresses text[], p_reference text)
RETURNS TABLE (id bigint, places smallint[], is_whole boolean) LANGUAGE sql STABLE AS $$
    SELECT m.id, f.places, m.recipients IS NULL OR cardinality(f.places) = f.count
    FROM mailroom_messages m LEFT JOIN accounts a ON a.id = m.account, LATERAL (
        SELECT coalesce(array_agg(r.place::smallint ORDER BY r.place) FILTER (
                   WHERE m.reference = p_reference OR mailroom_canonical(mailroom_address(r.mailbox)) = ANY (p_addresses)), '{}') AS places,
               count(*) FILTER (WHERE r.mailbox <> '') AS count
        FROM unnest(m.recipients || m.cc || m.bcc) WITH ORDINALITY r (mailbox, place)) f
    WHERE m.reference = p_reference OR f.places <> '{}' OR (m.recipients IS NULL AND mailroom_canonical(a.email) = ANY (p_addresses))
$$;

-- True if an attachment names one of p_addresses: in its name, or in what it says if that is text.
CREATE OR REPLACE FUNCTION mailroom_attachments_mention(p_message bigint, p_addresses text[]) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM mailroom_attachments f
        WHERE f.message = p_message
          AND mailroom_mentions(concat_ws(E'\n', f.name, f.content_type, f.content_id, CASE
                  WHEN f.content_type ~* '^text/|json|xml|^message/' THEN encode(f.content, 'escape') END), p_addresses));
END
$$;

-- Returns the messages that name one of p_addresses and have recipients who are not forgotten: whether their content names it,
-- and whether they have ended but for the recipients who are. Of a message to one of p_addresses and to others,
-- mailroom_erase_message() changes what the first list of columns does not have. p_raw: the raw mails that name one, as whoever
-- reads MIME knows. One to one of p_addresses and to others counts as such, since nothing can be cut out of it.
CREATE OR REPLACE FUNCTION mailroom_messages_naming(p_addresses text[], p_raw bigint[])
RETURNS TABLE (id bigint, is_in_content boolean, has_ended boolean) LANGUAGE sql AS $$
    WITH bounds AS MATERIALIZED (SELECT * FROM mailroom_prune_bounds(NULL)),
    found AS MATERIALIZED (SELECT * FROM mailroom_messages_of(p_addresses, NULL)),
    looked AS MATERIALIZED (
        SELECT m.id, f.places,
               mailroom_mentions(concat_ws(E'\n', m.sender, m.reply_to, m.return_path, m.profile, m.locale), p_addresses)
                   OR (f.id IS NULL AND mailroom_mentions(concat_ws(E'\n', m.headers, m.reference, m.idempotency_key), p_addresses)) AS is_beside,
               (f.id IS NULL AND mailroom_mentions(concat_ws(E'\n', m.subject, m.text, m.html, m.data), p_addresses))
                   OR mailroom_attachments_mention(m.id, p_addresses)
                   OR m.raw IS NOT NULL AND (f.id IS NOT NULL OR m.id = ANY (p_raw)) AS is_in_content
        FROM mailroom_messages m LEFT JOIN found f ON f.id = m.id WHERE f.is_whole IS NOT TRUE)
    SELECT l.id, l.is_in_content, mailroom_has_ended(
        l.id, m.send_after, coalesce(l.places, '{}'), (SELECT b.last FROM bounds b), (SELECT b.held FROM bounds b),
        floor(extract(epoch FROM clock_timestamp()))::bigint + 1)
    FROM looked l JOIN mailroom_messages m ON m.id = l.id WHERE l.is_beside OR l.is_in_content
$$;

-- Removes addresses, or the messages of a reference, for good: cancels what waits, and removes the addresses, the content that
-- nobody else is to get, and the words of relays. What remains says that something was delivered, not to whom. Counts what it
-- has done; sending: mails that are leaving now, whose addresses the record of them will have again; named and kept: those of
-- mailroom_unname_messages(). p_raw is that of mailroom_messages_naming().
CREATE OR REPLACE FUNCTION mailroom_forget(p_addresses text[], p_reference text, p_raw bigint[], OUT messages bigint, OUT cancelled bigint,
    OUT sending bigint, OUT named bigint, OUT kept bigint, OUT deliveries bigint)
LANGUAGE plpgsql AS $$
DECLARE
    v_all text[] := p_addresses;
    v_messages bigint[] := '{}';
    v_tokens bigint[] := '{}';
    v_result text;
    r record;
BEGIN
    cancelled := 0; sending := 0;
    FOR r IN
        SELECT f.places, f.is_whole, m.* FROM mailroom_messages_of(p_addresses, p_reference) f JOIN mailroom_messages m ON m.id = f.id
        ORDER BY m.id FOR UPDATE OF m
    LOOP
        v_messages := v_messages || r.id;
        v_result := NULL;
        IF EXISTS (SELECT FROM mailroom_schedule s WHERE s.send_after = r.send_after AND s.message = r.id) OR EXISTS (
            SELECT FROM tokens t
            WHERE t.message = r.id AND t.consumed_at IS NULL AND (r.is_whole OR t.recipient = ANY (r.places))) THEN
            v_result := mailroom_cancel_tokens(r.id, r.send_after, CASE WHEN NOT r.is_whole THEN r.places END);
            cancelled := cancelled + (v_result = 'cancelled')::integer;
            sending := sending + (v_result = 'sending')::integer;
        END IF;
        v_tokens := v_tokens || ARRAY(
            SELECT t.id FROM tokens t WHERE t.message = r.id AND (r.is_whole OR t.recipient = ANY (r.places)));
        v_all := v_all || ARRAY(
            SELECT mailroom_canonical(mailroom_address(b.mailbox)) FROM unnest(r.recipients || r.cc || r.bcc) WITH ORDINALITY b (mailbox, place)
            WHERE b.mailbox <> '' AND b.place = ANY (r.places));
        PERFORM mailroom_erase_message(r.id, r.places, r.is_whole, p_addresses, v_result = 'cancelled' AND r.is_whole);
    END LOOP;
    messages := cardinality(v_messages);
    SELECT u.named, u.kept INTO named, kept FROM mailroom_unname_messages(p_addresses, p_raw, v_messages) u;
    deliveries := mailroom_forget_deliveries(v_tokens, p_addresses);
    PERFORM mailroom_unname_records(v_all);
    PERFORM mailroom_record_operation('forget', NULL, jsonb_build_object(
        'messages', messages, 'cancelled', cancelled, 'named', named, 'kept', kept, 'deliveries', deliveries));
END
$$;

-- Removes p_addresses from the messages to others that have ended: named counts those that are not in p_counted. What such a
-- message says goes if it names an address, as it goes by retention. kept counts those that can still be sent, and keep it.
CREATE OR REPLACE FUNCTION mailroom_unname_messages(p_addresses text[], p_raw bigint[], p_counted bigint[], OUT named bigint, OUT kept bigint)
LANGUAGE plpgsql AS $$
DECLARE
    v_now bigint := floor(extract(epoch FROM clock_timestamp()));
    r record;
BEGIN
    named := 0; kept := 0;
    FOR r IN
        SELECT n.* FROM mailroom_messages_naming(p_addresses, p_raw) n JOIN mailroom_messages m ON m.id = n.id ORDER BY n.id FOR UPDATE OF m
    LOOP
        named := named + (r.has_ended AND r.id <> ALL (p_counted))::integer;
        kept := kept + (NOT r.has_ended)::integer;
        CONTINUE WHEN NOT r.has_ended;
        UPDATE mailroom_messages m SET
            sender = CASE WHEN NOT mailroom_mentions(m.sender, p_addresses) THEN m.sender END,
            reply_to = CASE WHEN NOT mailroom_mentions(m.reply_to, p_addresses) THEN m.reply_to END,
            return_path = CASE WHEN NOT mailroom_mentions(m.return_path, p_addresses) THEN m.return_path END,
            headers = CASE WHEN NOT mailroom_mentions(m.headers::text, p_addresses) THEN m.headers END,
            profile = CASE WHEN NOT mailroom_mentions(m.profile, p_addresses) THEN m.profile END,
            locale = CASE WHEN NOT mailroom_mentions(m.locale, p_addresses) THEN m.locale END,
            reference = mailroom_without_addresses(m.reference, p_addresses),
            fingerprint = CASE WHEN NOT mailroom_mentions(m.idempotency_key, p_addresses) THEN m.fingerprint END,
            idempotency_key = CASE WHEN NOT mailroom_mentions(m.idempotency_key, p_addresses) THEN m.idempotency_key END,
            erased_at = clock_timestamp()
        WHERE m.id = r.id;
        IF r.is_in_content THEN
            UPDATE tokens t SET expires_at = v_now WHERE t.message = r.id AND t.consumed_at IS NULL AND t.expires_at > v_now;
            DELETE FROM mailroom_attachments f WHERE f.message = r.id;
            UPDATE mailroom_messages m SET subject = NULL, text = NULL, html = NULL, raw = NULL, data = NULL, headers = NULL WHERE m.id = r.id;
        END IF;
    END LOOP;
END
$$;

-- Removes address and words of the deliveries of p_tokens and of those to p_addresses, and of others the words that name one.
-- Returns how many these are. An outcome that the application is yet to be told of stays, without an address.
CREATE OR REPLACE FUNCTION mailroom_forget_deliveries(p_tokens bigint[], p_addresses text[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_count bigint;
BEGIN
    UPDATE mailroom_deliveries d
    SET address = CASE WHEN NOT n.is_own THEN d.address END, counted_as = CASE WHEN NOT n.is_own THEN d.counted_as END,
        reply = CASE WHEN n.is_own OR mailroom_mentions(d.reply, p_addresses) THEN left(d.reply, 0) || '(forgotten)' ELSE d.reply END,
        message_id = CASE WHEN NOT (n.is_own OR mailroom_mentions(d.message_id, p_addresses)) THEN d.message_id END,
        content_hash = CASE WHEN NOT n.is_own THEN d.content_hash END,
        earlier_attempts = mailroom_forgotten_attempts(d.earlier_attempts, n.is_own, p_addresses)
    FROM mailroom_deliveries e, LATERAL (
        SELECT coalesce(e.token = ANY (p_tokens) OR mailroom_canonical(e.address) = ANY (p_addresses) OR e.counted_as = ANY (p_addresses),
                        false) AS is_own) n
    WHERE d.queue = e.queue AND d.token = e.token
      AND (n.is_own OR mailroom_mentions(concat_ws(E'\n', e.reply, e.message_id, e.earlier_attempts), p_addresses));
    GET DIAGNOSTICS v_count = ROW_COUNT;
    UPDATE mailroom_outcomes o SET address = NULL, reply = left(o.reply, 0) || '(forgotten)'
    WHERE o.token = ANY (p_tokens) OR mailroom_canonical(o.address) = ANY (p_addresses);
    UPDATE mailroom_outcomes o SET reply = '(forgotten)' WHERE mailroom_mentions(o.reply, p_addresses);
    RETURN v_count;
END
$$;

-- Returns the earlier attempts of a delivery without the addresses and words that are forgotten: all with p_is_own, or else those
-- of p_addresses.
CREATE OR REPLACE FUNCTION mailroom_forgotten_attempts(p_attempts jsonb, p_is_own boolean, p_addresses text[]) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_agg(CASE
        WHEN NOT (n.is_own OR mailroom_mentions(x.e->>'reply', p_addresses)) THEN x.e
        ELSE (CASE WHEN n.is_own THEN x.e - '{address,message_id,content_hash}'::text[] ELSE x.e END)
             || CASE WHEN x.e->>'reply' IS NULL THEN '{}' ELSE '{"reply": "(forgotten)"}' END::jsonb END ORDER BY x.o)
    FROM jsonb_array_elements(p_attempts) WITH ORDINALITY x (e, o),
    LATERAL (SELECT p_is_own OR coalesce(mailroom_canonical(x.e->>'address') = ANY (p_addresses), false) AS is_own) n
$$;

-- Replaces p_addresses in what operators and sinks have said. Who did an operation stays.
CREATE OR REPLACE FUNCTION mailroom_unname_records(p_addresses text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mailroom_operations o
    SET reason = mailroom_without_addresses(o.reason, p_addresses),
        details = mailroom_without_addresses(o.details::text, p_addresses)::jsonb
    WHERE mailroom_mentions(concat_ws(E'\n', o.reason, o.details), p_addresses);
    UPDATE mailroom_sinks s
    SET reason = mailroom_without_addresses(s.reason, p_addresses), learnt = mailroom_without_addresses(s.learnt::text, p_addresses)::json
    WHERE mailroom_mentions(concat_ws(E'\n', s.reason, s.learnt), p_addresses);
    UPDATE mailroom_queues q SET pause_reason = mailroom_without_addresses(q.pause_reason, p_addresses)
    WHERE mailroom_mentions(q.pause_reason, p_addresses);
    PERFORM mailroom_forget_bounces(p_addresses);
    UPDATE mailroom_schema_history h SET reason = mailroom_without_addresses(h.reason, p_addresses)
    WHERE mailroom_mentions(h.reason, p_addresses);
END
$$;

-- Empties the places p_places among the recipients of a message, so that its others keep theirs, and removes p_addresses from
-- its content and key; with p_is_whole all of its addresses, its content, and what it is about. A key is not changed into
-- another one, which two messages could have.
CREATE OR REPLACE FUNCTION mailroom_erase_message(p_message bigint, p_places smallint[], p_is_whole boolean, p_addresses text[],
    p_is_cancelled boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_to integer;
    v_cc integer;
BEGIN
    SELECT coalesce(cardinality(m.recipients), 0), coalesce(cardinality(m.cc), 0) INTO v_to, v_cc
    FROM mailroom_messages m WHERE m.id = p_message;
    UPDATE mailroom_messages m SET
        recipients = mailroom_emptied(m.recipients, p_places, 0), cc = mailroom_emptied(m.cc, p_places, v_to),
        bcc = mailroom_emptied(m.bcc, p_places, v_to + v_cc),
        cancelled_at = CASE WHEN p_is_cancelled THEN coalesce(m.cancelled_at, clock_timestamp()) ELSE m.cancelled_at END,
        erased_at = clock_timestamp()
    WHERE m.id = p_message;
    IF p_is_whole THEN
        DELETE FROM mailroom_attachments f WHERE f.message = p_message;
        UPDATE mailroom_messages m SET
            sender = NULL, reply_to = NULL, headers = NULL, data = NULL, subject = NULL, text = NULL, html = NULL, raw = NULL,
            return_path = NULL, idempotency_key = NULL, fingerprint = NULL, reference = NULL, options = nullif(m.options - 'tags', '{}')
        WHERE m.id = p_message;
    ELSE
        UPDATE mailroom_messages m SET
            headers = mailroom_without_addresses(m.headers::text, p_addresses)::jsonb,
            data = mailroom_without_addresses(m.data::text, p_addresses)::jsonb,
            subject = mailroom_without_addresses(m.subject, p_addresses), text = mailroom_without_addresses(m.text, p_addresses),
            html = mailroom_without_addresses(m.html, p_addresses), reference = mailroom_without_addresses(m.reference, p_addresses),
            idempotency_key = CASE WHEN NOT mailroom_mentions(m.idempotency_key, p_addresses) THEN m.idempotency_key END,
            fingerprint = NULL
        WHERE m.id = p_message;
    END IF;
END
$$;

-- Returns p_mailboxes, of which the first has the place p_before + 1, with '' at p_places.
CREATE OR REPLACE FUNCTION mailroom_emptied(p_mailboxes text[], p_places smallint[], p_before integer) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN p_mailboxes IS NOT NULL THEN ARRAY(
    SELECT CASE WHEN u.place + p_before = ANY (p_places) THEN '' ELSE u.mailbox END
    FROM unnest(p_mailboxes) WITH ORDINALITY u (mailbox, place) ORDER BY u.place) END;
