-- What is removed of messages: their content once they can be sent no more, and an address for good.

-- Removes the content of messages that ended before p_before (seconds since 1970): subject, text, HTML, data, headers and
-- attachments. The record of who got what stays. Works in steps as those of prune.sql do, whose columns it returns.
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
          AND (coalesce(m.subject, m.text, m.html) IS NOT NULL OR num_nonnulls(m.data, m.headers) > 0
               OR EXISTS (SELECT FROM mailroom_attachments f WHERE f.message = l.id))
          AND NOT EXISTS (SELECT FROM mailroom_schedule s WHERE s.send_after = l.send_after AND s.message = l.id)
          AND NOT EXISTS (
              SELECT FROM tokens t
              WHERE t.message = l.id
                AND (t.id > (SELECT last FROM bounds) OR (SELECT held FROM bounds) @> t.id
                     OR NOT (mailroom_token_is_old(t.consumed_at, t.expires_at, p_before) OR mailroom_is_settled(t, p_before))))
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
        SET subject = NULL, text = NULL, html = NULL, data = NULL, headers = NULL, erased_at = coalesce(m.erased_at, clock_timestamp())
        WHERE m.id = ANY (v_old);
        removed := cardinality(v_old);
    END IF;
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

-- Returns the messages with one of p_addresses, which are in lower case, or with p_reference: the places of the recipients
-- that are meant, over to, cc and bcc, and whether these are all.
CREATE OR REPLACE FUNCTION mailroom_messages_of(p_addresses text[], p_reference text)
RETURNS TABLE (id bigint, places smallint[], is_whole boolean) LANGUAGE sql STABLE AS $$
    SELECT m.id, f.places, m.recipients IS NULL OR cardinality(f.places) = f.count
    FROM mailroom_messages m LEFT JOIN accounts a ON a.id = m.account, LATERAL (
        SELECT coalesce(array_agg(r.place::smallint ORDER BY r.place) FILTER (
                   WHERE m.reference = p_reference OR lower(mailroom_address(r.mailbox)) = ANY (p_addresses)), '{}') AS places,
               count(*) FILTER (WHERE r.mailbox <> '') AS count
        FROM unnest(m.recipients || m.cc || m.bcc) WITH ORDINALITY r (mailbox, place)) f
    WHERE m.reference = p_reference OR f.places <> '{}' OR (m.recipients IS NULL AND lower(a.email) = ANY (p_addresses))
$$;

-- Removes addresses, or the messages of a reference, for good: cancels what waits, and removes the addresses, the content that
-- nobody else is to get, and the words of relays. What remains says that something was delivered, not to whom. Counts what it
-- has done; sending: mails that are leaving now, whose addresses the record of them will have again.
CREATE OR REPLACE FUNCTION mailroom_forget(p_addresses text[], p_reference text, OUT messages bigint, OUT cancelled bigint,
    OUT sending bigint, OUT deliveries bigint)
LANGUAGE plpgsql AS $$
DECLARE
    v_all text[] := p_addresses;
    v_tokens bigint[] := '{}';
    v_result text;
    r record;
BEGIN
    messages := 0; cancelled := 0; sending := 0;
    FOR r IN
        SELECT f.places, f.is_whole, m.* FROM mailroom_messages_of(p_addresses, p_reference) f JOIN mailroom_messages m ON m.id = f.id
        ORDER BY m.id FOR UPDATE OF m
    LOOP
        messages := messages + 1;
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
            SELECT lower(mailroom_address(b.mailbox)) FROM unnest(r.recipients || r.cc || r.bcc) WITH ORDINALITY b (mailbox, place)
            WHERE b.mailbox <> '' AND b.place = ANY (r.places));
        PERFORM mailroom_erase_message(r.id, r.places, r.is_whole, p_addresses, v_result = 'cancelled' AND r.is_whole);
    END LOOP;
    UPDATE mailroom_deliveries d
    SET address = NULL, counted_as = NULL, reply = CASE WHEN d.reply IS NOT NULL THEN '(forgotten)' END,
        earlier_attempts = (
            SELECT jsonb_agg((x.e - 'address') || CASE WHEN x.e->>'reply' IS NULL THEN '{}' ELSE '{"reply": "(forgotten)"}' END::jsonb
                             ORDER BY x.o)
            FROM jsonb_array_elements(d.earlier_attempts) WITH ORDINALITY x (e, o))
    WHERE d.token = ANY (v_tokens) OR lower(d.address) = ANY (p_addresses)
       OR EXISTS (SELECT FROM unnest(p_addresses) a WHERE strpos(lower(concat(d.reply, d.earlier_attempts)), a) > 0);
    GET DIAGNOSTICS deliveries = ROW_COUNT;
    UPDATE mailroom_operations o
    SET reason = mailroom_without_addresses(o.reason, v_all), details = mailroom_without_addresses(o.details::text, v_all)::jsonb
    WHERE mailroom_without_addresses(concat(o.reason, o.details), v_all) <> concat(o.reason, o.details);
    UPDATE mailroom_sinks s SET reason = mailroom_without_addresses(s.reason, v_all)
    WHERE mailroom_without_addresses(s.reason, v_all) <> s.reason;
    PERFORM mailroom_record_operation('forget', NULL, jsonb_build_object(
        'messages', messages, 'cancelled', cancelled, 'deliveries', deliveries));
END
$$;

-- Empties the places p_places among the recipients of a message, so that its others keep theirs, and removes p_addresses from
-- its other columns; with p_is_whole all of its addresses, its content, and what it is about.
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
            sender = NULL, reply_to = NULL, headers = NULL, data = NULL, subject = NULL, text = NULL, html = NULL,
            idempotency_key = NULL, fingerprint = NULL, reference = NULL
        WHERE m.id = p_message;
    ELSE
        UPDATE mailroom_messages m SET
            headers = mailroom_without_addresses(m.headers::text, p_addresses)::jsonb,
            data = mailroom_without_addresses(m.data::text, p_addresses)::jsonb,
            subject = mailroom_without_addresses(m.subject, p_addresses), text = mailroom_without_addresses(m.text, p_addresses),
            html = mailroom_without_addresses(m.html, p_addresses), reference = mailroom_without_addresses(m.reference, p_addresses),
            idempotency_key = mailroom_without_addresses(m.idempotency_key, p_addresses), fingerprint = NULL
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
