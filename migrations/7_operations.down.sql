-- Drops the record of operations with its contents.
--
-- Takes ACCESS EXCLUSIVE on accounts for an instant.
--
-- deletes: table mailroom_operations

DROP TRIGGER after_account_suspension ON accounts;
DROP FUNCTION trg_after_account_suspension();
DROP FUNCTION mailroom_operation_ids(text, jsonb);
DROP TABLE mailroom_operations;
