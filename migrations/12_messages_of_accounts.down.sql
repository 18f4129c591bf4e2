-- Keeps the messages of an account that is deleted.
--
-- Takes ACCESS EXCLUSIVE on accounts for a moment: reads no row.

DROP TRIGGER after_account_delete ON accounts;
DROP FUNCTION trg_after_account_delete();
