-- Finds the tokens of one account, for audits and for the deletion of an account.
--
-- Runs outside a transaction, does not block readers or writers, rewrites no table. Waits for every transaction of the
-- database that is open when it begins.

CREATE INDEX CONCURRENTLY IF NOT EXISTS tokens_account_idx ON tokens (account);
