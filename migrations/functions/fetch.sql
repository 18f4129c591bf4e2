-- The tokens of a claimed batch, as lines and as mails.

-- Returns the tokens of a batch that has a mask. A range of ids with a mask stands for as many ranges as it
-- has tokens, and takes a fiftieth of the time to write.
CREATE OR REPLACE FUNCTION mailroom_masked_ids(p_ids int8multirange, p_mask bit varying) RETURNS int8multirange
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (SELECT coalesce(range_agg(int8range(lower(p_ids) + i, lower(p_ids) + i + 1)), '{}'::int8multirange)
        FROM generate_series(0, length(p_mask) - 1) i WHERE get_bit(p_mask, i) = 1);

-- Returns the tokens of a batch from the columns ids and ids_mask. Inlined; where there is no mask, that is all.
CREATE OR REPLACE FUNCTION mailroom_batch_ids(p_ids int8multirange, p_mask bit varying) RETURNS int8multirange
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN p_mask IS NULL THEN p_ids ELSE mailroom_masked_ids(p_ids, p_mask) END;

-- Returns the tokens of a batch, ordered by id; no rows if the batch has been leased again since. It has no SET clause,
-- so that queries inline it. Its body is not parsed here, because that would keep the column types from changing. Each
-- gap-free range becomes an index condition on tokens. The limit keeps the planner from reading all tokens, whatever
-- the statistics say. OFFSET 0 makes it compute the first id once, which takes longer than all else that the mask
-- costs.
CREATE OR REPLACE FUNCTION mailroom_batch_rows(p_batch bigint, p_attempt integer)
RETURNS TABLE (id bigint, account bigint, action token_action, secret bytea, code text, expires_at bigint, consumed_at bigint,
               created_at bigint, message bigint, recipient smallint)
LANGUAGE sql STABLE AS $$
    SELECT t.id, t.account, t.action, t.secret, t.code, t.expires_at, t.consumed_at, t.created_at, t.message, t.recipient
    FROM (SELECT ids, ids_mask, lower(ids) AS first FROM mailroom_batches
          WHERE mailroom_batches.id = p_batch AND mailroom_batches.attempts = p_attempt OFFSET 0) b, unnest(b.ids) u(g), LATERAL (
        SELECT * FROM tokens WHERE tokens.id >= lower(u.g) AND tokens.id < upper(u.g)
        ORDER BY tokens.id LIMIT 2000000000) t
    WHERE CASE WHEN b.ids_mask IS NULL THEN true ELSE get_bit(b.ids_mask, (t.id - b.first)::integer) = 1 END
$$;

-- Returns the tokens of a batch with their accounts, and whether they may still be emitted. email: the address of the
-- recipient of a message, or else of the account. A token whose account or message was deleted is left out. LIMIT 1 keeps
-- each look-up of a message an index scan, and a token without one makes none.
CREATE OR REPLACE FUNCTION mailroom_batch_tokens(p_batch bigint, p_attempt integer)
RETURNS TABLE (id bigint, action token_action, secret bytea, code text, expires_at bigint, email text, login text, state text,
               created_at bigint, account bigint, message bigint, recipient smallint)
LANGUAGE sql STABLE AS $$
    SELECT t.id, t.action, t.secret, t.code, t.expires_at, coalesce(mailroom_address(m.mailbox), a.email), coalesce(a.login, ''),
           mailroom_token_state(t.action, t.consumed_at, t.expires_at, a.status,
                                (SELECT floor(extract(epoch FROM clock_timestamp()))::bigint)),
           t.created_at, t.account, t.message, t.recipient
    FROM mailroom_batch_rows(p_batch, p_attempt) t
    LEFT JOIN accounts a ON a.id = t.account
    LEFT JOIN LATERAL (
        SELECT mailroom_messages.id, (recipients || cc || bcc)[t.recipient] AS mailbox FROM mailroom_messages
        WHERE t.message IS NOT NULL AND mailroom_messages.id = t.message LIMIT 1) m ON true
    WHERE (t.message IS NULL OR m.id IS NOT NULL) AND coalesce(m.mailbox, a.email) IS NOT NULL
$$;

-- Returns the same for use in the statement that claims the batch. The snapshot of that statement is older than the
-- claim's reads and writes; a volatile function takes its own. Returns no rows if p_batch is null. p_messages: whether
-- the batch has tokens of messages, as the claim says; without them it looks none up.
CREATE OR REPLACE FUNCTION mailroom_fetch(p_batch bigint, p_attempt integer, p_messages boolean)
RETURNS TABLE (id bigint, action token_action, secret bytea, code text, expires_at bigint, email text, login text, state text,
               created_at bigint, account bigint, message bigint, recipient smallint)
LANGUAGE plpgsql AS $$
BEGIN
    IF p_batch IS NULL THEN
        RETURN;
    ELSIF p_messages THEN
        RETURN QUERY SELECT * FROM mailroom_batch_tokens(p_batch, p_attempt);
    ELSE
        RETURN QUERY
            SELECT t.id, t.action, t.secret, t.code, t.expires_at, a.email::text, a.login::text,
                   mailroom_token_state(t.action, t.consumed_at, t.expires_at, a.status,
                                        (SELECT floor(extract(epoch FROM clock_timestamp()))::bigint)),
                   t.created_at, t.account, t.message, t.recipient
            FROM mailroom_batch_rows(p_batch, p_attempt) t JOIN accounts a ON a.id = t.account;
    END IF;
END
$$;

-- Returns the same with what a sink with outcomes needs to know about each token: its earlier attempts, and, if p_newer,
-- whether its account has a newer recovery token that may still be emitted (null if not). resent_at: since when
-- it is a mail of its own, in seconds since 1970, if an operator had it emitted again after its creation; null if not.
-- traceparent, message_created_at and was_tried are for traces, and cost nothing where they are not selected: the trace of the token, when its
-- message was inserted, and whether an attempt is on record.
-- home: to which database the ids of its mails are bound.
-- locale: of the message; of a mail to an account else that of the column locale, which an application may give accounts.
-- suppressed: why the address gets no mail, null if it does; security mail goes to it all the same.
-- mail_key: 64 bits for the mail's id. They differ from those of any other token, also of the same id, by its random
-- secret, or by its message, whose copies share a key; from those of its mail before it was emitted again; and from
-- those of the same token in a copy of the database, by the oids: a copy is another sender, and a mailbox that drops
-- duplicates must not drop the mail of one for that of the other. Retries, a failover and pg_upgrade keep them. Usually
-- no token of the batch has a record, which is found out once. LIMIT and OFFSET 0 make the planner use the indexes on
-- the account and on queue and token, whatever the statistics say: the plan may be made while the tables are empty.
CREATE OR REPLACE FUNCTION mailroom_batch_mails(p_batch bigint, p_attempt integer, p_newer boolean)
RETURNS TABLE (id bigint, action token_action, secret bytea, code text, expires_at bigint, email text, login text, state text,
               created_at bigint, account bigint, attempts integer, unknowns integer, newer bigint,
               resent_at bigint, mail_key text, message bigint, recipient smallint, recipients text[], cc text[], bcc text[],
               sender text, reply_to text, headers jsonb, template text, locale text, data jsonb, subject text, text text,
               html text, raw_size integer, return_path text, keeps_return_path boolean, profile text, topic text, reference text, attachments integer, suppressed text, traceparent text, message_created_at timestamptz,
               was_tried boolean, home text)
LANGUAGE sql STABLE AS $$
    WITH again AS MATERIALIZED (
        SELECT s.id, floor(extract(epoch FROM s.claimed_at))::bigint AS at, s.resent + '{}' AS ids
        FROM mailroom_batches k JOIN mailroom_batches s ON s.queue = k.queue AND s.id < k.id
        WHERE k.id = p_batch AND s.resent IS NOT NULL
          AND extract(epoch FROM s.claimed_at) >= coalesce((
              SELECT t.created_at FROM tokens t WHERE t.id >= lower(k.ids) ORDER BY t.id LIMIT 1), 0) - 3600)
    SELECT b.id, b.action, b.secret, b.code, b.expires_at, b.email, b.login, b.state, b.created_at, b.account,
           coalesce(d.attempts, 0), coalesce(d.unknowns, 0),
           CASE WHEN p_newer AND b.action = 'password_recovery' THEN (
               SELECT max(n.id) FROM (SELECT * FROM tokens WHERE tokens.account = b.account OFFSET 0) n
               WHERE n.id > b.id AND n.action = b.action
                 AND mailroom_is_live(n.consumed_at, n.expires_at,
                                      (SELECT floor(extract(epoch FROM clock_timestamp()))::bigint))) END,
           r.at,
           mailroom_mail_key(b.secret, b.message, m.created_at, (SELECT d.oid FROM mailroom_this_database() d), r.id),
           b.message, b.recipient, m.recipients, m.cc, m.bcc, m.sender, m.reply_to, m.headers,
           CASE WHEN m.text IS NULL AND m.html IS NULL AND m.raw IS NULL THEN coalesce(m.template, m.of_action) END,
           CASE WHEN b.recipient IS NULL AND m.locale IS NULL AND (SELECT EXISTS (
               SELECT FROM pg_attribute a WHERE a.attrelid = 'accounts'::regclass AND a.attname = 'locale' AND NOT a.attisdropped)) THEN (
               SELECT to_jsonb(a)->>'locale' FROM accounts a WHERE a.id = b.account) ELSE m.locale END,
           m.data, m.subject, m.text, m.html, octet_length(m.raw), m.return_path,
           coalesce((m.options->>'keep_return_path')::boolean, false), m.profile, m.topic, m.reference, m.attachments,
           CASE WHEN (SELECT EXISTS (SELECT FROM mailroom_suppressions)) THEN (
               SELECT concat_ws(' ', s.kind, s.reason, '(' || nullif(s.topic, '') || ')') FROM mailroom_suppressions s
               WHERE s.address = mailroom_canonical(b.email) AND s.topic = ANY (ARRAY['', m.topic])
                 AND (s.topic <> '' OR NOT (SELECT c.security FROM mailroom_actions c WHERE c.action = b.action::text))
               ORDER BY s.topic LIMIT 1) END,
           (SELECT k.traceparent FROM tokens k WHERE k.id = b.id), m.created_at, d.answered_at IS NOT NULL,
           (SELECT h.name FROM mailroom_home_name() h)
    FROM mailroom_batch_tokens(p_batch, p_attempt) b
    JOIN (SELECT queue FROM mailroom_batches WHERE mailroom_batches.id = p_batch) q ON true
    LEFT JOIN LATERAL (
        SELECT * FROM mailroom_deliveries WHERE mailroom_deliveries.queue = q.queue AND mailroom_deliveries.token = b.id
          AND (SELECT EXISTS (SELECT FROM mailroom_batches k, LATERAL (
                   SELECT FROM mailroom_deliveries r
                   WHERE r.queue = k.queue AND r.token >= lower(k.ids) AND r.token < upper(k.ids) LIMIT 1) x
               WHERE k.id = p_batch))
        LIMIT 1) d ON true
    LEFT JOIN LATERAL (
        SELECT a.id, a.at FROM again a WHERE a.ids @> b.id AND a.at >= b.created_at ORDER BY a.id DESC LIMIT 1) r ON true
    LEFT JOIN LATERAL (
        SELECT o.*, (SELECT c.template FROM mailroom_actions c WHERE c.action = o.action) AS of_action,
               (SELECT count(*)::integer FROM mailroom_attachments f WHERE f.message = o.id) AS attachments
        FROM mailroom_messages o WHERE b.message IS NOT NULL AND o.id = b.message LIMIT 1) m ON true
$$;
