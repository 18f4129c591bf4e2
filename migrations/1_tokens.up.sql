-- Tokens: ids that the queue can rely on, codes from a cryptographic source, times as bigint seconds since 1970, the
-- columns of a token that delivers a message, and the number of the database where it was asked for.
--
-- integer ends in January 2038. Times are rounded down, as all comparisons do, so that no row appears to be created after
-- it was emitted. A transaction must have its transaction id before it draws a token id: the proof that the queue loses no token
-- depends on it. A trigger enforces the order, and refuses ids that were chosen or drawn beforehand.
--
-- Rewrites tokens under ACCESS EXCLUSIVE: blocks readers and writers (some seconds per million rows).
--
-- The functions are those that the trigger and the default begin with: migrations/functions makes them anew.

-- Five decimal digits, all 100,000 equally likely (to within 4 in 10^10): the last 48 bits of a version 4
-- UUID are random, and PostgreSQL takes them from a cryptographic source.
CREATE FUNCTION mailroom_random_code() RETURNS varchar LANGUAGE sql VOLATILE PARALLEL SAFE
RETURN lpad((('x' || right(gen_random_uuid()::text, 12))::bit(48)::bigint % 100000)::text, 5, '0');

CREATE FUNCTION trg_before_token_insert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.id IS NOT NULL THEN
        RAISE EXCEPTION 'tokens.id is assigned by the database, not by the application'
            USING ERRCODE = 'generated_always',
                  HINT = 'omit the column from the INSERT, and read the id back with RETURNING id';
    END IF;
    PERFORM pg_current_xact_id();
    NEW.id := nextval('tokens_id_seq');
    RETURN NEW;
END
$$;

-- The number of this database. Each row of tokens, messages and accounts has that of the database where it was asked for, so
-- that rows which are loaded into another one are told from its own. A function, since a load of rows changes none.
DO $$
BEGIN
    EXECUTE format('CREATE FUNCTION mailroom_home_number() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN %s',
                   ('x' || right(gen_random_uuid()::text, 7))::bit(28)::integer);
END
$$;

-- The type of a column cannot change while a trigger names it.
DROP TRIGGER after_token_consumed ON tokens;
DROP TRIGGER after_token_inserted ON tokens;

ALTER TABLE tokens ADD COLUMN message bigint;
ALTER TABLE tokens ADD COLUMN recipient smallint;
ALTER TABLE tokens ADD COLUMN home integer DEFAULT mailroom_home_number();
ALTER TABLE tokens ADD COLUMN traceparent text;

-- A token of a message has no account if its message has none, and no secret if its action has no path.
ALTER TABLE tokens
    ALTER COLUMN account DROP NOT NULL,
    ALTER COLUMN secret DROP NOT NULL,
    ADD CONSTRAINT tokens_message_check CHECK (message IS NOT NULL OR (account IS NOT NULL AND secret IS NOT NULL)),
    ALTER COLUMN id DROP DEFAULT,
    ALTER COLUMN code SET DEFAULT mailroom_random_code(),
    ALTER COLUMN expires_at TYPE bigint,
    ALTER COLUMN expires_at SET DEFAULT floor(extract(epoch FROM now() + interval '15 minute')),
    ALTER COLUMN consumed_at TYPE bigint,
    ALTER COLUMN created_at TYPE bigint,
    ALTER COLUMN created_at SET DEFAULT floor(extract(epoch FROM now()));

ALTER SEQUENCE tokens_id_seq CACHE 1;

COMMENT ON COLUMN tokens.message IS 'the message that it delivers; null for a token of an account';
COMMENT ON COLUMN tokens.recipient IS 'its place in recipients, cc and bcc of the message, from 1; null: the address of its account';
COMMENT ON COLUMN tokens.home IS 'the number of the database where its mail was asked for; of another one, it is not mailed here';
COMMENT ON COLUMN tokens.traceparent IS
    'the span of the application that asked for its mail (W3C Trace Context, version 00); null for none';

CREATE TRIGGER before_token_insert BEFORE INSERT ON tokens
    FOR EACH ROW EXECUTE FUNCTION trg_before_token_insert();

CREATE TRIGGER after_token_consumed AFTER UPDATE OF consumed_at ON tokens
    FOR EACH ROW WHEN (NEW.consumed_at IS NOT NULL AND OLD.consumed_at IS NULL)
    EXECUTE FUNCTION trg_after_token_consumed();

-- A statement that inserts many tokens notifies once.
CREATE TRIGGER after_token_inserted AFTER INSERT ON tokens
    FOR EACH STATEMENT EXECUTE FUNCTION trg_after_token_inserted();
