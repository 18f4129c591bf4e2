-- What comes back after a relay accepted a mail: whose mail it was, what is recorded, and which address gets no more. It
-- does not read reports and does not judge their words (core/bounce), and sends nothing again.

-- Returns the 64 bits that mailroom_batch_mails() has put into the Message-ID of a mail: whoever knows them has seen it.
-- p_database: the oid of this database. Inlined.
CREATE OR REPLACE FUNCTION mailroom_mail_key(p_secret bytea, p_message bigint, p_created_at timestamptz, p_database oid, p_batch bigint)
RETURNS text LANGUAGE sql STABLE
RETURN encode(substring(sha256(
    CASE WHEN p_message IS NULL THEN p_secret ELSE convert_to(concat_ws(':', p_message, extract(epoch FROM p_created_at)), 'UTF8') END
    || convert_to(concat_ws(':', p_database, 'tokens'::regclass::oid, p_batch), 'UTF8')) FROM 1 FOR 8), 'hex');

-- Returns the mail that a report is about, none if it shows none. p_tokens: ids that a signature proves, each of one copy in this
-- database. p_message_ids: the parts of Message-IDs, as objects with queue, key, and token or message; or with given, one that is not
-- of mailroom. p_address: of the recipient in the report, which tells the copies of a message apart. is_proof: false if all who got a
-- copy of the message know what the report shows, or anybody may, as an application has chosen the Message-ID.
CREATE OR REPLACE FUNCTION mailroom_reported_mail(p_tokens bigint[], p_message_ids jsonb, p_address text)
RETURNS TABLE (queue text, token bigint, address text, is_proof boolean) LANGUAGE sql STABLE AS $$
    WITH queues AS MATERIALIZED (SELECT j.job_type AS name FROM jobs j UNION SELECT q.name FROM mailroom_queues q),
    found AS (
        SELECT q.name AS queue, k.id AS token, true AS is_own, false AS is_given FROM unnest(p_tokens) k (id), queues q
        UNION ALL
        SELECT g.queue, g.token, false, true
        FROM jsonb_to_recordset(p_message_ids) i (given text), LATERAL (
            SELECT o.queue, o.token FROM mailroom_deliveries o
            WHERE o.message_id = i.given AND o.message_id NOT LIKE '%.mailroom@%' AND o.message_id NOT LIKE '%.amazonses.com' LIMIT 1000) g
        UNION ALL
        SELECT i.queue, t.id, i.token IS NOT NULL, false
        FROM jsonb_to_recordset(p_message_ids) i (queue text, key text, token bigint, message bigint),
             LATERAL (SELECT * FROM tokens o WHERE o.id = i.token OR o.message = i.message LIMIT 1000) t
             LEFT JOIN mailroom_messages m ON m.id = t.message
        WHERE EXISTS (
            SELECT FROM (
                SELECT NULL::bigint AS id
                UNION ALL SELECT b.id FROM mailroom_batches b WHERE b.queue = i.queue AND b.resent IS NOT NULL AND b.resent @> t.id) r
            WHERE mailroom_mail_key(
                t.secret, t.message, m.created_at, (SELECT d.oid FROM mailroom_this_database() d), r.id) = i.key)),
    copies AS (SELECT count(DISTINCT g.token) = 1 AS is_one FROM found g)
    SELECT d.queue, d.token, d.address, NOT f.is_given AND (f.is_own OR (SELECT c.is_one FROM copies c))
    FROM found f,
        -- LIMIT: one look-up for each, however many the planner expects to be found.
        LATERAL (SELECT o.* FROM mailroom_deliveries o WHERE o.queue = f.queue AND o.token = f.token LIMIT 1) d
    WHERE d.address IS NOT NULL
      AND (f.is_own OR mailroom_canonical(d.address) = mailroom_canonical(p_address) OR (SELECT c.is_one FROM copies c))
    ORDER BY f.is_own DESC, mailroom_canonical(d.address) = mailroom_canonical(p_address) DESC, d.last_at DESC LIMIT 1
$$;

-- Returns the mail that an event of a provider is about, none if it shows none. p_mail: an object with the tags queue and token, the id
-- in the provider's answer, and sent_at, seconds since 1970; null for what is no event. The tags are of another database too that
-- mails by the same account, so they count for the address only that was mailed; a token without a queue does too. Without tags the
-- id is looked for among the mails of that time.
CREATE OR REPLACE FUNCTION mailroom_event_mail(p_mail jsonb, p_address text)
RETURNS TABLE (queue text, token bigint, address text, is_proof boolean) LANGUAGE sql STABLE AS $$
    SELECT d.queue, d.token, d.address, true
    FROM jsonb_to_record(p_mail) p (id text, queue text, token bigint, sent_at double precision),
         LATERAL (
            SELECT o.* FROM (SELECT j.job_type AS name FROM jobs j UNION SELECT n.name FROM mailroom_queues n) q
                       JOIN mailroom_deliveries o ON o.queue = q.name AND o.token = p.token
            WHERE (p.queue IS NULL OR regexp_replace(q.name, '[^A-Za-z0-9-]+', '_', 'g') = regexp_replace(p.queue, '[^A-Za-z0-9-]+', '_', 'g'))
              AND mailroom_canonical(o.address) = mailroom_canonical(p_address)
            UNION ALL
            SELECT o.* FROM mailroom_deliveries o
            WHERE o.last_at BETWEEN to_timestamp(p.sent_at) - interval '1 hour' AND to_timestamp(p.sent_at) + interval '1 day'
              AND (o.reply = p.id OR starts_with(o.reply, p.id || ' ('))) d
    WHERE d.address IS NOT NULL LIMIT 1
$$;

-- True if neither address that a report gives, of the original and of the final recipient, is another one than p_mailed: what an
-- alias or a list led to says nothing of the alias. A report may hide both.
CREATE OR REPLACE FUNCTION mailroom_is_about(p_original text, p_final text, p_mailed text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(mailroom_canonical(p_original) = mailroom_canonical(p_mailed), true)
   AND coalesce(mailroom_canonical(p_final) = mailroom_canonical(p_mailed), true);

-- Records what reports say of the mails that they are about, once each, and suppresses or frees their addresses. p_most, p_period:
-- how many mails of this time to an address may come back softly before it is suppressed too; null: any. p_reports: an
-- array of objects with digest (hex), place, tokens, message_ids, mail (also with message_id, by which the provider sent it), address, final, kind, reason, status, code, reply, remote, report
-- (hex, or none), counts (false: it proves nothing of its address) and at (seconds since 1970, of what is told late). Returns for each of them, in their order, whether it is new, and whose mail it was. One whose mail was not known is
-- new again when it is: an event may come before the mail is on record. SECURITY DEFINER, so that whatever reads the mailbox of
-- bounces needs no other right.
CREATE OR REPLACE FUNCTION mailroom_record_bounces(p_source text, p_reports jsonb, p_most integer DEFAULT NULL, p_period interval DEFAULT NULL)
RETURNS TABLE (is_new boolean, queue text, token bigint, address text, suppressed boolean, traceparent text, created_at bigint, message bigint)
LANGUAGE plpgsql SECURITY DEFINER AS $$
#variable_conflict use_column
DECLARE
    v_ids bigint[];
    v_queues text[];
    v_tokens bigint[];
    v_addresses text[];
    v_counts boolean[];
BEGIN
    WITH given AS MATERIALIZED (
        SELECT decode(i.digest, 'hex') AS digest, i.place, i.kind, i.reason, i.status, i.code, i.reply, i.remote, i.report, i.at, i.n, f.queue, f.token,
               coalesce(f.address, i.address) AS address,
               f.is_proof AND coalesce(i.counts, true) AND mailroom_is_about(i.address, i.final, f.address) AS is_proof,
               row_number() OVER (PARTITION BY i.digest, i.place ORDER BY i.n) = 1 AS is_first
        FROM ROWS FROM (jsonb_to_recordset(p_reports) AS (
                 digest text, place smallint, tokens bigint[], message_ids jsonb, mail jsonb, address text, final text, kind text, reason text,
                 status text, code integer, reply text, remote text, report text, counts boolean, at double precision)) WITH ORDINALITY
                 i (digest, place, tokens, message_ids, mail, address, final, kind, reason, status, code, reply, remote, report, counts, at, n)
             LEFT JOIN LATERAL (
                 WITH shown AS MATERIALIZED (SELECT * FROM mailroom_reported_mail(i.tokens, i.message_ids, i.address))
                 SELECT * FROM shown s
                 UNION ALL SELECT * FROM mailroom_event_mail(i.mail, i.address) WHERE NOT EXISTS (SELECT FROM shown s WHERE s.is_proof)
                 ORDER BY is_proof DESC LIMIT 1) f ON true),
    added AS (
        INSERT INTO mailroom_bounces AS b (at, digest, place, source, queue, token, address, kind, reason, status, code, reply, remote, report,
                                            topic)
        -- What happened a moment ago has the clock of this server, as its mail has.
        SELECT CASE WHEN to_timestamp(g.at) < clock_timestamp() - interval '1 hour' THEN to_timestamp(g.at) ELSE clock_timestamp() END,
               g.digest, g.place, p_source, g.queue, g.token, g.address, g.kind, g.reason, g.status, g.code, g.reply, g.remote,
               CASE WHEN g.token IS NULL OR g.kind = 'unread' THEN decode(g.report, 'hex') END,
               CASE WHEN g.kind IN ('complaint', 'unsubscribed') THEN mailroom_topic_of(g.token) END
        FROM given g WHERE g.is_first ORDER BY g.n
        ON CONFLICT (digest, place) DO UPDATE
        SET queue = excluded.queue, token = excluded.token, address = excluded.address, report = excluded.report, topic = excluded.topic
        WHERE b.token IS NULL AND excluded.token IS NOT NULL
        RETURNING b.id, b.digest, b.place)
    SELECT array_agg(a.id ORDER BY g.n), array_agg(g.queue ORDER BY g.n), array_agg(g.token ORDER BY g.n), array_agg(g.address ORDER BY g.n),
           -- A copy that arrived somewhere was to more than one mailbox.
           array_agg(g.is_proof AND (g.kind = 'delivered' OR NOT EXISTS (
               SELECT FROM given o WHERE o.digest = g.digest AND o.token = g.token AND o.kind = 'delivered')) ORDER BY g.n)
    INTO v_ids, v_queues, v_tokens, v_addresses, v_counts
    FROM given g LEFT JOIN added a ON a.digest = g.digest AND a.place = g.place AND g.is_first;
    -- A provider that gives mails a Message-ID of its own may tell it in its events alone.
    UPDATE mailroom_deliveries d SET message_id = e.report->'mail'->>'message_id'
    FROM jsonb_array_elements(p_reports) WITH ORDINALITY e (report, n) JOIN unnest(v_queues, v_tokens) WITH ORDINALITY u (queue, token, n) ON u.n = e.n
    WHERE e.report->'mail'->>'message_id' IS NOT NULL AND d.queue = u.queue AND d.token = u.token AND d.message_id IS NULL;
    PERFORM mailroom_follow_bounces(v_ids, v_counts);
    IF p_most IS NOT NULL THEN
        PERFORM mailroom_suppress_soft(v_ids, v_counts, p_most, p_period);
    END IF;
    PERFORM mailroom_tell_bounces(v_ids);
    RETURN QUERY
    SELECT u.id IS NOT NULL, u.queue, u.token, u.address,
           b.token IS NOT NULL AND EXISTS (SELECT FROM mailroom_suppressions s WHERE s.address = mailroom_canonical(u.address)
                                             AND s.topic = ANY (ARRAY['', mailroom_topic_of(u.token)])),
           t.traceparent, t.created_at, t.message
    FROM unnest(v_ids, v_queues, v_tokens, v_addresses) WITH ORDINALITY u (id, queue, token, address, n)
    LEFT JOIN mailroom_bounces b ON b.id = u.id
    LEFT JOIN LATERAL (SELECT * FROM tokens WHERE tokens.id = u.token LIMIT 1) t ON true ORDER BY u.n;
END
$$;

-- Returns the parts of a Message-ID of ours as an object with queue, key, and token or message; null for another's. A queue's name has
-- =2E for a dot.
CREATE OR REPLACE FUNCTION mailroom_message_id_parts(p_message_id text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    v_parts text[] := regexp_match(p_message_id, '^<?((?:[^.@=]|=[0-9A-F]{2})+)\.([^.@]+)\.(m?)([1-9][0-9]{0,17})\.mailroom@[^@>]+>?$');
BEGIN
    RETURN CASE WHEN v_parts IS NOT NULL THEN jsonb_build_object(
        'queue', convert_from((SELECT string_agg(CASE WHEN left(c[1], 1) = '=' THEN decode(substr(c[1], 2), 'hex') ELSE convert_to(c[1], 'UTF8') END, '')
                               FROM regexp_matches(v_parts[1], '=[0-9A-F]{2}|[^=]', 'g') c), 'UTF8'),
        'key', v_parts[2], CASE v_parts[3] WHEN 'm' THEN 'message' ELSE 'token' END, v_parts[4]::bigint) END;
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END
$$;

-- Returns why p_report is no report as mailroom_report() takes it; null if it is one.
CREATE OR REPLACE FUNCTION mailroom_report_problem(p_report jsonb) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN CASE
        WHEN jsonb_typeof(p_report) <> 'object' THEN 'it is no object'
        WHEN coalesce(p_report->>'address', '') NOT LIKE '%_@_%' THEN 'address is no address'
        WHEN coalesce(p_report->>'kind', '') NOT IN ('hard', 'soft', 'undetermined', 'complaint', 'unsubscribed', 'delayed', 'auto_reply', 'delivered')
            THEN format('kind %L is none of hard, soft, undetermined, complaint, unsubscribed, delayed, auto_reply and delivered', p_report->>'kind')
        WHEN coalesce(p_report->>'message_id', p_report->>'token', '') = '' THEN 'it has neither message_id nor token'
        WHEN p_report->>'token' !~ '^[1-9][0-9]{0,17}$' THEN format('token %L is no number of a token', p_report->>'token')
        WHEN p_report ? 'at' AND (CASE jsonb_typeof(p_report->'at') WHEN 'number' THEN to_timestamp((p_report->>'at')::float8)
                                                                   ELSE (p_report->>'at')::timestamptz END) IS NULL THEN 'at is no time'
    END;
EXCEPTION WHEN data_exception THEN
    RETURN format('at %L is no time', p_report->>'at');
END
$$;

-- Records what a script has learnt of mails: an object with address, kind, reason, message_id or token, and at, or an array of such, all
-- of them or none. reason: one of our words, or those of a server. at: a time, or seconds since 1970; two reports that differ in nothing
-- are one. Other members are ignored. p_most, p_period: as of mailroom_record_bounces(). SECURITY DEFINER like that.
CREATE OR REPLACE FUNCTION mailroom_report(p_report jsonb, p_most integer DEFAULT NULL, p_period interval DEFAULT NULL)
RETURNS TABLE (is_new boolean, queue text, token bigint, address text, suppressed boolean) LANGUAGE plpgsql SECURITY DEFINER AS $$
#variable_conflict use_column
DECLARE
    v_reports jsonb := CASE jsonb_typeof(p_report) WHEN 'array' THEN p_report ELSE jsonb_build_array(p_report) END;
    v_problem text := (SELECT format('report %s: %s', e.n, mailroom_report_problem(e.value)) FROM jsonb_array_elements(v_reports) WITH ORDINALITY e (value, n)
                       WHERE mailroom_report_problem(e.value) IS NOT NULL ORDER BY e.n LIMIT 1);
BEGIN
    IF v_problem IS NOT NULL THEN
        RAISE EXCEPTION '%', v_problem USING ERRCODE = 'invalid_parameter_value',
            HINT = 'write it as {"address": "ada@mail.example", "kind": "hard", "reason": "550 5.1.1 user unknown", "token": 42}';
    END IF;
    RETURN QUERY
    SELECT r.is_new, r.queue, r.token, r.address, r.suppressed
    FROM mailroom_record_bounces('sql', (
        SELECT coalesce(jsonb_agg(jsonb_build_object(
            'digest', encode(sha256(convert_to(concat_ws(E'\n', 'report', e.value->>'address', v.kind, coalesce(e.value->>'reason', ''),
                                                         coalesce(e.value->>'message_id', ''), coalesce(e.value->>'token', ''),
                                                         coalesce(e.value->>'at', '')), 'UTF8')), 'hex'),
            'place', 1, 'tokens', '[]'::jsonb, 'message_ids', CASE WHEN v.id IS NULL THEN '[]' ELSE jsonb_build_array(v.id) END,
            'mail', CASE WHEN e.value ? 'token' THEN jsonb_build_object('token', e.value->>'token') END,
            'address', e.value->>'address', 'kind', v.kind, 'reason', v.reason,
            'reply', CASE WHEN v.reason IS DISTINCT FROM e.value->>'reason' THEN left(e.value->>'reason', 500) END,
            'report', encode(convert_to(left(e.value::text, 4096), 'UTF8'), 'hex'),
            'at', CASE jsonb_typeof(e.value->'at') WHEN 'number' THEN (e.value->>'at')::float8
                                                   WHEN 'string' THEN extract(epoch FROM (e.value->>'at')::timestamptz) END) ORDER BY e.n), '[]')
        FROM jsonb_array_elements(v_reports) WITH ORDINALITY e (value, n),
             LATERAL (SELECT e.value->>'kind' AS kind, mailroom_reason_of(e.value->>'kind', e.value->>'reason') AS reason,
                             mailroom_message_id_parts(e.value->>'message_id') AS id) v), p_most, p_period) r;
END
$$;

-- Returns the reason that a report of this kind is recorded with: p_reason if it is one of our words, else what the kind says. Inlined.
CREATE OR REPLACE FUNCTION mailroom_reason_of(p_kind text, p_reason text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN p_reason IN ('user_unknown', 'host_unknown', 'has_moved', 'not_accept', 'mailbox_full', 'message_too_big', 'suspended', 'filtered',
                              'blocked', 'spam', 'virus', 'policy', 'authentication', 'sender_rejected', 'relaying_denied', 'content',
                              'rate_limited', 'expired', 'network', 'system', 'feedback', 'vacation', 'delivered', 'unsubscribed', 'undetermined')
            THEN p_reason
            ELSE CASE p_kind WHEN 'hard' THEN 'user_unknown' WHEN 'complaint' THEN 'feedback' WHEN 'auto_reply' THEN 'vacation'
                             WHEN 'delivered' THEN 'delivered' WHEN 'unsubscribed' THEN 'unsubscribed' ELSE 'undetermined' END END;

-- Suppresses the addresses of new bounces, or frees them, as if they came one after the other, and closes unknown outcomes: what came
-- back was accepted. A delivery frees an address if it is of another mail than the bounce: a server may return a mail that it has
-- taken, and events come in any order. p_counts: for each, whether it proves something of its address. A Message-ID that an
-- application has chosen proves nothing, so whoever knows it closes no outcome. A complaint or a wish for no more about a mail with a
-- topic is about that topic alone.
CREATE OR REPLACE FUNCTION mailroom_follow_bounces(p_bounces bigint[], p_counts boolean[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mailroom_deliveries d
    SET state = 'accepted', accepted_at = coalesce(d.accepted_at, b.at), last_at = b.at, reply = 'a report of it came back'
    FROM unnest(p_bounces, p_counts) u (id, counts) JOIN mailroom_bounces b ON b.id = u.id
    WHERE d.queue = b.queue AND d.token = b.token AND d.state = 'unknown'
      AND (u.counts OR d.message_id LIKE '%.mailroom@%' OR d.message_id IS NULL);
    DELETE FROM mailroom_suppressions s USING unnest(p_bounces, p_counts) u (id, counts), mailroom_bounces b
    WHERE u.counts AND b.id = u.id AND b.token IS NOT NULL AND b.kind = 'delivered' AND s.address = mailroom_canonical(b.address)
      AND s.kind = 'bounce' AND b.token IS DISTINCT FROM (SELECT o.token FROM mailroom_bounces o WHERE o.id = s.bounce);
    WITH counted AS MATERIALIZED (
        SELECT b.*, mailroom_canonical(b.address) AS canonical,
               coalesce(b.topic, '') AS scope
        FROM unnest(p_bounces, p_counts) u (id, counts) JOIN mailroom_bounces b ON b.id = u.id
        WHERE u.counts AND b.token IS NOT NULL AND b.kind IN ('delivered', 'hard', 'complaint', 'unsubscribed'))
    INSERT INTO mailroom_suppressions AS s (address, topic, kind, reason, bounce, added_by)
    SELECT DISTINCT ON (b.canonical, b.scope) b.canonical, b.scope, CASE b.kind WHEN 'hard' THEN 'bounce' ELSE b.kind END, b.reason, b.id,
           'mailroom bounce'
    FROM counted b
    WHERE b.kind IN ('complaint', 'unsubscribed') OR b.kind = 'hard' AND NOT EXISTS (
        -- Another mail that is delivered later frees it.
        SELECT FROM counted l WHERE l.kind = 'delivered' AND l.id > b.id AND l.canonical = b.canonical AND l.token <> b.token)
    ORDER BY b.canonical, b.scope, b.kind = 'complaint' DESC, b.kind = 'unsubscribed' DESC, b.id
    ON CONFLICT (address, topic) DO UPDATE SET kind = excluded.kind, reason = excluded.reason, bounce = excluded.bounce
    WHERE s.kind = 'bounce' AND excluded.kind IN ('complaint', 'unsubscribed');
END
$$;

-- Suppresses the addresses of mails of a batch that are on record as rejected, for the reasons that their consumer gives. SECURITY
-- DEFINER, so that it needs no right on the table, and can suppress no other address.
CREATE OR REPLACE FUNCTION mailroom_suppress_refused(p_queue text, p_batch bigint, p_outcomes jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO mailroom_suppressions (address, kind, reason, added_by)
    SELECT mailroom_canonical(d.address), 'bounce', mailroom_reason_of('hard', min(o.suppress)), 'mailroom send'
    FROM jsonb_to_recordset(p_outcomes) o (first bigint, last bigint, suppress text)
    JOIN mailroom_deliveries d ON d.queue = p_queue AND d.token BETWEEN o.first AND o.last
    WHERE o.suppress IS NOT NULL AND d.batch = p_batch AND d.state = 'rejected' AND d.address LIKE '%_@_%'
    GROUP BY 1 ORDER BY 1
    ON CONFLICT (address, topic) DO NOTHING;
END
$$;

-- Suppresses the addresses of new soft bounces of which p_most mails or more came back within p_period, and none arrived since. A
-- refusal that is about the sender or the mail itself says nothing of the address.
CREATE OR REPLACE FUNCTION mailroom_suppress_soft(p_bounces bigint[], p_counts boolean[], p_most integer, p_period interval) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO mailroom_suppressions (address, kind, reason, bounce, added_by)
    SELECT DISTINCT ON (s.canonical) s.canonical, 'bounce', 'repeated_soft', s.id, 'mailroom bounce'
    FROM (SELECT b.*, mailroom_canonical(b.address) AS canonical
          FROM unnest(p_bounces, p_counts) u (id, counts) JOIN mailroom_bounces b ON b.id = u.id
          WHERE u.counts AND b.token IS NOT NULL AND b.kind = 'soft') s
    WHERE p_most <= (
        SELECT count(DISTINCT (o.queue, o.token)) FROM mailroom_bounces o
        WHERE o.address IN (s.address, s.canonical) AND o.kind = 'soft' AND o.at > clock_timestamp() - p_period
          AND o.reason NOT IN ('blocked', 'spam', 'virus', 'policy', 'authentication', 'sender_rejected', 'relaying_denied', 'content',
                               'rate_limited', 'message_too_big')
          AND o.id > coalesce((SELECT max(l.id) FROM mailroom_bounces l
                               WHERE l.address IN (s.address, s.canonical) AND l.kind = 'delivered'), 0))
    ORDER BY s.canonical, s.id DESC
    ON CONFLICT (address, topic) DO NOTHING;
END
$$;

-- Returns the outcome that a report of this kind is of its mail; null for what is none: a delay, an automatic reply, a
-- wish for no more mails. Inlined.
CREATE OR REPLACE FUNCTION mailroom_reported_outcome(p_kind text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN p_kind IN ('hard', 'soft', 'undetermined') THEN 'bounced' WHEN p_kind = 'complaint' THEN 'complained'
            WHEN p_kind = 'delivered' THEN 'delivered' END;

-- Of several reports of a mail the highest decides, in whatever order they came, and of several such the newest: a server may accept
-- a mail that it returns later, but what says less than a hard bounce says nothing of a mail that arrived. Inlined.
CREATE OR REPLACE FUNCTION mailroom_report_rank(p_kind text) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE p_kind WHEN 'complaint' THEN 3 WHEN 'hard' THEN 2 WHEN 'delivered' THEN 1 ELSE 0 END;

-- True if a report of its mail that ranks higher was there before: then it changes nothing.
CREATE OR REPLACE FUNCTION mailroom_is_outranked(p_bounce mailroom_bounces) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM mailroom_bounces o LEFT JOIN mailroom_deliveries d ON d.queue = o.queue AND d.token = o.token
        WHERE o.token = p_bounce.token AND o.queue = p_bounce.queue AND o.id < p_bounce.id
          AND o.at >= least(d.accepted_at, d.answered_at)
          AND mailroom_reported_outcome(o.kind) IS NOT NULL AND mailroom_report_rank(o.kind) > mailroom_report_rank(p_bounce.kind));
END
$$;

-- Tells the application of new bounces, as of outcomes.
CREATE OR REPLACE FUNCTION mailroom_tell_bounces(p_bounces bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO mailroom_outcomes (queue, token, state, address, code, reply, topic)
    SELECT b.queue, b.token, coalesce(mailroom_reported_outcome(b.kind), b.kind), b.address, b.code,
           concat_ws(' ', b.reason || ':', b.status, b.reply), b.topic
    FROM mailroom_bounces b
    WHERE b.id = ANY (p_bounces) AND b.token IS NOT NULL AND (mailroom_reported_outcome(b.kind) IS NOT NULL OR b.kind = 'unsubscribed')
      AND (SELECT h.outcomes_since FROM mailroom_home h) IS NOT NULL AND (b.kind = 'unsubscribed' OR NOT mailroom_is_outranked(b))
    ORDER BY b.id;
    PERFORM mailroom_notify_outcome(b.token) FROM mailroom_bounces b JOIN tokens t ON t.id = b.token
    WHERE b.id = ANY (p_bounces) AND (mailroom_reported_outcome(b.kind) IS NOT NULL OR b.kind = 'unsubscribed') AND t.message IS NOT NULL
      AND (b.kind = 'unsubscribed' OR NOT mailroom_is_outranked(b));
END
$$;

-- Removes the records of bounces from before p_before (seconds since 1970), in steps as those of prune.sql. The suppression of an
-- address stays.
CREATE OR REPLACE FUNCTION mailroom_prune_bounces(p_after bigint, p_last bigint, p_before bigint, p_limit integer, p_dry_run boolean,
    OUT old_rows integer, OUT removed integer, OUT reached bigint, OUT referred integer, OUT referred_by text) LANGUAGE plpgsql AS $$
DECLARE
    v_old bigint[];
BEGIN
    SELECT coalesce(array_agg(o.id), '{}'), CASE WHEN count(*) = p_limit THEN max(o.id) END INTO v_old, reached
    FROM (SELECT b.id FROM mailroom_bounces b WHERE b.id > p_after AND b.id <= p_last AND b.at < to_timestamp(p_before)
          ORDER BY b.id LIMIT p_limit) o;
    old_rows := cardinality(v_old); removed := old_rows;
    IF NOT p_dry_run THEN
        SELECT d.removed, d.referred, d.referred_by INTO removed, referred, referred_by
        FROM mailroom_delete_old('mailroom_bounces', v_old, 'true', p_before) d;
    END IF;
END
$$;

-- Removes p_addresses from what is recorded of bounces, and their suppression.
CREATE OR REPLACE FUNCTION mailroom_forget_bounces(p_addresses text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mailroom_bounces b
    SET address = CASE WHEN mailroom_canonical(b.address) <> ALL (p_addresses) THEN b.address END, reply = mailroom_without_addresses(b.reply, p_addresses),
        report = NULL
    WHERE mailroom_canonical(b.address) = ANY (p_addresses) OR mailroom_mentions(b.reply, p_addresses)
       OR mailroom_mentions(encode(b.report, 'escape'), p_addresses);
    DELETE FROM mailroom_suppressions s WHERE s.address = ANY (p_addresses);
END
$$;

-- Returns the last bounce or complaint of each address, and whose mail it was. SECURITY DEFINER, so that an application that may
-- execute it needs no right on the tables.
CREATE OR REPLACE FUNCTION mailroom_bounced_addresses()
RETURNS TABLE (address text, kind text, reason text, status text, code integer, reply text, at timestamptz, account bigint, message bigint,
               reference text) LANGUAGE sql STABLE SECURITY DEFINER AS $$
    SELECT DISTINCT ON (b.address) b.address, b.kind, b.reason, b.status, b.code, b.reply, b.at, t.account, t.message, m.reference
    FROM mailroom_bounces b LEFT JOIN tokens t ON t.id = b.token LEFT JOIN mailroom_messages m ON m.id = t.message
    WHERE b.kind IN ('hard', 'soft', 'undetermined', 'complaint', 'unsubscribed') AND b.token IS NOT NULL AND b.address IS NOT NULL
    ORDER BY b.address, b.id DESC
$$;
