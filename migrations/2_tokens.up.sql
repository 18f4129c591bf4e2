-- Tokens: ids that the queue can rely on, codes from a cryptographic source, times as bigint seconds since 1970, rounded
-- down, like an account's times.
--
-- A transaction must have its transaction id before it draws a token id: the proof that the queue loses no token
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

-- The type of a column cannot change while a trigger names it.
DROP TRIGGER after_token_consumed ON tokens;

ALTER TABLE tokens
    ALTER COLUMN id DROP DEFAULT,
    ALTER COLUMN code SET DEFAULT mailroom_random_code(),
    ALTER COLUMN expires_at TYPE bigint,
    ALTER COLUMN expires_at SET DEFAULT floor(extract(epoch FROM now() + interval '15 minute')),
    ALTER COLUMN consumed_at TYPE bigint,
    ALTER COLUMN created_at TYPE bigint,
    ALTER COLUMN created_at SET DEFAULT floor(extract(epoch FROM now()));

ALTER SEQUENCE tokens_id_seq CACHE 1;

CREATE TRIGGER before_token_insert BEFORE INSERT ON tokens
    FOR EACH ROW EXECUTE FUNCTION trg_before_token_insert();

CREATE TRIGGER after_token_consumed AFTER UPDATE OF consumed_at ON tokens
    FOR EACH ROW WHEN (NEW.consumed_at IS NOT NULL AND OLD.consumed_at IS NULL)
    EXECUTE FUNCTION trg_after_token_consumed();
