-- The tokens of one account, for audits and for the deletion of an account.
--
-- Built beside the work of others, outside a transaction: readers and writers go on, rewrites no table. Waits for
-- every transaction of the database that is open when it begins.

CREATE INDEX CONCURRENTLY IF NOT EXISTS tokens_account_idx ON tokens (account);
