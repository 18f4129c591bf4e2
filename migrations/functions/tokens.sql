-- Tokens: the triggers that give a token its id and its account its status, what is due, and what a queue takes.

-- Returns the id of a token that was drawn last, whether or not its transaction was committed; 0 if there is none. Inlined.
CREATE OR REPLACE FUNCTION mailroom_last_drawn_token() RETURNS TABLE (id bigint) LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN s.is_called THEN s.last_value ELSE s.last_value - 1 END FROM tokens_id_seq s
$$;

-- Returns five decimal digits, all 100,000 equally likely (to within 4 in 10^10): the last 48 bits of a version 4
-- UUID are random, and PostgreSQL takes them from a cryptographic source.
CREATE OR REPLACE FUNCTION mailroom_random_code() RETURNS varchar LANGUAGE sql VOLATILE PARALLEL SAFE
RETURN lpad((('x' || right(gen_random_uuid()::text, 12))::bit(48)::bigint % 100000)::text, 5, '0');

-- Returns the secret of a message's token: 32 bytes. By SHA-256 of three version 4 UUIDs, with 366 random bits from a
-- cryptographic source: pgcrypto's gen_random_bytes() may be in any schema, where a function with a pinned search_path
-- does not find it.
CREATE OR REPLACE FUNCTION mailroom_random_secret() RETURNS bytea LANGUAGE sql VOLATILE PARALLEL SAFE
RETURN sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));

-- Returns the traceparent of W3C Trace Context that p_text is, without what a version after 00 may add to it; null if it is none. Inlined.
CREATE OR REPLACE FUNCTION mailroom_traceparent(p_text text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN p_text ~ '^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:$|-)'
             AND (octet_length(p_text) = 55 OR left(p_text, 2) <> '00')
            THEN '00' || substr(p_text, 3, 53) END;

-- Returns the traceparent that p_text is, and raises an error if it is none: what somebody has written for this mail.
CREATE OR REPLACE FUNCTION mailroom_required_traceparent(p_text text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF p_text IS NOT NULL AND mailroom_traceparent(p_text) IS NULL THEN
        RAISE EXCEPTION 'the traceparent "%" is none', left(p_text, 100) USING ERRCODE = 'invalid_parameter_value',
            HINT = 'write it as 00-<32 hexadecimal digits>-<16 hexadecimal digits>-01, or SET LOCAL mailroom.traceparent, where a wrong one is left out';
    END IF;
    RETURN mailroom_traceparent(p_text);
END
$$;

-- Gives a token its id, after its transaction has its own: the proof that the queue loses no token depends on the
-- order. And its trace: that of its row, else of the transaction (SET LOCAL mailroom.traceparent), which is left out if it
-- is malformed: a trace is not worth a token.
CREATE OR REPLACE FUNCTION trg_before_token_insert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.id IS NOT NULL THEN
        RAISE EXCEPTION 'tokens.id is assigned by the database, not by the application'
            USING ERRCODE = 'generated_always',
                  HINT = 'omit the column from the INSERT, and read the id back with RETURNING id';
    END IF;
    -- No statement, as PERFORM would be one.
    NEW.id := CASE WHEN pg_current_xact_id() IS NOT NULL THEN nextval('tokens_id_seq') END;
    NEW.home := coalesce(NEW.home, mailroom_home_number());
    IF NEW.traceparent IS NOT NULL THEN
        NEW.traceparent := mailroom_required_traceparent(NEW.traceparent);
    ELSIF current_setting('mailroom.traceparent', true) <> '' THEN
        NEW.traceparent := mailroom_traceparent(current_setting('mailroom.traceparent', true));
    END IF;
    RETURN NEW;
END
$$;

-- Consuming an activation token activates its account.
CREATE OR REPLACE FUNCTION trg_after_token_consumed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.action = 'activation' THEN
        UPDATE accounts SET status = 'active' WHERE id = NEW.account AND status = 'provisioned';
    END IF;
    RETURN NULL;
END
$$;

-- True if a token is neither consumed nor expired at p_now (seconds since 1970): it is due if its account has the right
-- status, too. It has no SET clause, so that queries inline it, and a body parsed here, so that no search_path matters.
CREATE OR REPLACE FUNCTION mailroom_is_live(p_consumed_at bigint, p_expires_at bigint, p_now bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN p_consumed_at IS NULL AND p_expires_at > p_now;

-- Returns 'due' if a token may be emitted, otherwise why it is skipped: 'consumed', 'expired' or 'wrong status' (of its
-- account). Inlined, like the function above. Actions that are not built in are looked up, which takes ten times as long.
CREATE OR REPLACE FUNCTION mailroom_token_state(p_action token_action, p_consumed_at bigint, p_expires_at bigint,
                                     p_status account_status, p_now bigint)
RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE
    WHEN p_consumed_at IS NOT NULL THEN 'consumed'
    WHEN p_expires_at <= p_now THEN 'expired'
    WHEN p_action = 'activation'::token_action THEN
        CASE WHEN p_status = 'provisioned'::account_status THEN 'due' ELSE 'wrong status' END
    WHEN p_action = 'password_recovery'::token_action THEN
        CASE WHEN p_status = 'active'::account_status THEN 'due' ELSE 'wrong status' END
    WHEN p_action::text = 'message' THEN 'due'
    ELSE mailroom_action_state(p_action, p_status)
END;

-- True if a queue that takes p_actions (null: all) takes the tokens of p_action. Inlined, like the function above.
CREATE OR REPLACE FUNCTION mailroom_takes(p_actions token_action[], p_action token_action) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN p_actions IS NULL OR p_action = ANY (p_actions);
