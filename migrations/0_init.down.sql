-- Removes accounts, tokens and the cursor, with all their rows. The extension pgcrypto stays: others may use it.
--
-- Takes ACCESS EXCLUSIVE on all three tables for an instant.
--
-- deletes: table jobs
-- deletes: table tokens
-- deletes: table accounts

LOCK TABLE accounts, tokens, jobs IN ACCESS EXCLUSIVE MODE;

DROP TABLE jobs;
DROP TABLE tokens;
DROP TABLE accounts;
DROP FUNCTION trg_after_token_inserted();
DROP FUNCTION trg_after_token_consumed();
DROP FUNCTION trg_before_account_status_change();
DROP FUNCTION trg_before_account_insert();
DROP TYPE job_type;
DROP TYPE token_action;
DROP TYPE account_status;
