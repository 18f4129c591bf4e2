-- Finds the tokens of a message, for its status and to cancel it. Takes no space for tokens of accounts.
--
-- Runs outside a transaction, does not block readers or writers, rewrites no table. Waits for every transaction of the
-- database that is open when it begins.

CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS tokens_message_idx ON tokens (message, recipient) WHERE message IS NOT NULL;
