-- The messages of an account are deleted with it, as its tokens are.
--
-- Takes SHARE ROW EXCLUSIVE on accounts for a moment: waits for open writers, and reads no row.
--
-- The function is the one that the trigger begins with: migrations/functions makes it anew.

CREATE FUNCTION trg_after_account_delete() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    RETURN NULL;
END
$$;

CREATE TRIGGER after_account_delete AFTER DELETE ON accounts REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION trg_after_account_delete();
