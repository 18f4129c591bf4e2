-- Takes ids from the column's default again, and codes from random(), turns a token's times back into integer, rounded
-- to the nearest second, and deletes tokens of messages. Fails and changes nothing if a time lies after January 2038.
--
-- Rewrites tokens under ACCESS EXCLUSIVE: blocks readers and writers.
--
-- deletes: rows tokens WHERE message IS NOT NULL
-- deletes: column tokens.traceparent

LOCK TABLE tokens IN ACCESS EXCLUSIVE MODE;

DELETE FROM tokens WHERE message IS NOT NULL;

-- The type of a column cannot change while a trigger names it.
DROP TRIGGER after_token_consumed ON tokens;
DROP TRIGGER after_token_inserted ON tokens;
DROP TRIGGER before_token_insert ON tokens;

ALTER TABLE tokens
    DROP CONSTRAINT tokens_message_check,
    DROP COLUMN message,
    DROP COLUMN recipient,
    DROP COLUMN home,
    DROP COLUMN traceparent,
    ALTER COLUMN account SET NOT NULL,
    ALTER COLUMN secret SET NOT NULL,
    ALTER COLUMN id SET DEFAULT nextval('tokens_id_seq'),
    ALTER COLUMN code SET DEFAULT lpad(to_char(random() * 100000, 'FM00000'), 5, '0'),
    ALTER COLUMN expires_at TYPE integer,
    ALTER COLUMN expires_at SET DEFAULT extract(epoch FROM now() + interval '15 minute'),
    ALTER COLUMN consumed_at TYPE integer,
    ALTER COLUMN created_at TYPE integer,
    ALTER COLUMN created_at SET DEFAULT extract(epoch FROM now());

DROP FUNCTION trg_before_token_insert();
DROP FUNCTION mailroom_random_code();
DROP FUNCTION mailroom_home_number();

CREATE TRIGGER after_token_consumed AFTER UPDATE OF consumed_at ON tokens
    FOR EACH ROW WHEN (NEW.consumed_at IS NOT NULL AND OLD.consumed_at IS NULL)
    EXECUTE FUNCTION trg_after_token_consumed();

CREATE TRIGGER after_token_inserted AFTER INSERT ON tokens
    FOR EACH ROW EXECUTE FUNCTION trg_after_token_inserted();
