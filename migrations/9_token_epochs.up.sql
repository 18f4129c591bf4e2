-- Stores a token's times as bigint seconds since 1970, rounded down, like an account's times.
--
-- Rewrites tokens under ACCESS EXCLUSIVE: blocks readers and writers (some seconds per million rows).

-- The type of a column cannot change while a trigger names it.
DROP TRIGGER after_token_consumed ON tokens;

ALTER TABLE tokens
    ALTER COLUMN expires_at TYPE bigint,
    ALTER COLUMN expires_at SET DEFAULT floor(extract(epoch FROM now() + interval '15 minute')),
    ALTER COLUMN consumed_at TYPE bigint,
    ALTER COLUMN created_at TYPE bigint,
    ALTER COLUMN created_at SET DEFAULT floor(extract(epoch FROM now()));

CREATE TRIGGER after_token_consumed AFTER UPDATE OF consumed_at ON tokens
    FOR EACH ROW WHEN (NEW.consumed_at IS NOT NULL AND OLD.consumed_at IS NULL)
    EXECUTE FUNCTION trg_after_token_consumed();
