-- Finds the pages of tokens that may hold a given creation time. Takes a few bytes for many pages.
--
-- Runs outside a transaction, does not block readers or writers, rewrites no table. Waits for every transaction of the
-- database that is open when it begins.

CREATE INDEX CONCURRENTLY IF NOT EXISTS tokens_created_at_idx ON tokens USING brin (created_at)
    WITH (pages_per_range = 32, autosummarize = on);
