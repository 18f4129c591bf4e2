-- Drops the index tokens_message_idx.
--
-- Runs outside a transaction and does not block readers or writers. Waits for every transaction that uses the table
-- when it begins.

DROP INDEX CONCURRENTLY IF EXISTS tokens_message_idx;
