-- Takes ACCESS EXCLUSIVE on tokens for a moment, and reads no row.

DROP TRIGGER after_token_inserted ON tokens;

CREATE TRIGGER after_token_inserted AFTER INSERT ON tokens
    FOR EACH ROW EXECUTE FUNCTION trg_after_token_inserted();
