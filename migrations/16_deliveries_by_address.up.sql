-- Finds the mails that an address was sent lately, for send.per_recipient. Takes no space without that setting.
--
-- Runs outside a transaction, does not block readers or writers, rewrites no table. Waits for every transaction of the
-- database that is open when it begins.

CREATE INDEX CONCURRENTLY IF NOT EXISTS mailroom_deliveries_address_idx ON mailroom_deliveries
    (queue, counted_as, coalesce(accepted_at, last_at)) WHERE counted_as IS NOT NULL;
