-- Removes the record of operations, with what is in it, and the indexes by time.
--
-- Takes ACCESS EXCLUSIVE on accounts and tokens for an instant.

LOCK TABLE accounts, tokens IN ACCESS EXCLUSIVE MODE;

DROP TRIGGER after_account_suspension ON accounts;
DROP FUNCTION trg_after_account_suspension();
DROP INDEX tokens_consumed_at_idx;
DROP INDEX tokens_created_at_idx;
DROP TABLE mailroom_operations;
