-- Deliveries without what send.per_recipient counts.
--
-- Takes ACCESS EXCLUSIVE on mailroom_deliveries for a moment: rewrites and reads no row.
--
-- deletes: column mailroom_deliveries.counted_as

ALTER TABLE mailroom_deliveries DROP COLUMN counted_as;
