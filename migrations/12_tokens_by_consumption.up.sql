-- Tokens by when they were consumed; those that are not take no room.
--
-- Built beside the work of others, outside a transaction: readers and writers go on, rewrites no table. Waits for
-- every transaction of the database that is open when it begins.

CREATE INDEX CONCURRENTLY IF NOT EXISTS tokens_consumed_at_idx ON tokens (consumed_at) WHERE consumed_at IS NOT NULL;
