-- Drops the index tokens_consumed_at_idx.
--
-- Dropped beside the work of others, outside a transaction: readers and writers go on. Waits for every
-- transaction that uses the table when it begins.

DROP INDEX CONCURRENTLY IF EXISTS tokens_consumed_at_idx;
