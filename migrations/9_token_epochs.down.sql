-- Turns a token's times back into integer, rounded to the nearest second. Fails and changes nothing if a time lies
-- after January 2038.
--
-- Rewrites tokens under ACCESS EXCLUSIVE.

-- The type of a column cannot change while a trigger names it.
DROP TRIGGER after_token_consumed ON tokens;

ALTER TABLE tokens
    ALTER COLUMN expires_at TYPE integer,
    ALTER COLUMN expires_at SET DEFAULT extract(epoch FROM now() + interval '15 minute'),
    ALTER COLUMN consumed_at TYPE integer,
    ALTER COLUMN created_at TYPE integer,
    ALTER COLUMN created_at SET DEFAULT extract(epoch FROM now());

CREATE TRIGGER after_token_consumed AFTER UPDATE OF consumed_at ON tokens
    FOR EACH ROW WHEN (NEW.consumed_at IS NOT NULL AND OLD.consumed_at IS NULL)
    EXECUTE FUNCTION trg_after_token_consumed();
