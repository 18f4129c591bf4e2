-- Finds tokens by the time they were consumed. Unconsumed tokens take no space in it.
--
-- Runs outside a transaction, does not block readers or writers, rewrites no table. Waits for every transaction of the
-- database that is open when it begins.

CREATE INDEX CONCURRENTLY IF NOT EXISTS tokens_consumed_at_idx ON tokens (consumed_at) WHERE consumed_at IS NOT NULL;
