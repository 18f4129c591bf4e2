-- Which pages of tokens may hold one of a certain time: a few bytes for many pages.
--
-- Built beside the work of others, outside a transaction: readers and writers go on, rewrites no table. Waits for
-- every transaction of the database that is open when it begins.

CREATE INDEX CONCURRENTLY IF NOT EXISTS tokens_created_at_idx ON tokens USING brin (created_at)
    WITH (pages_per_range = 32, autosummarize = on);
