-- Checks new deliveries alone.
--
-- Takes ACCESS EXCLUSIVE on mailroom_deliveries for a moment: rewrites and reads no row.

ALTER TABLE mailroom_deliveries
    DROP CONSTRAINT mailroom_deliveries_counted_check,
    ADD CONSTRAINT mailroom_deliveries_counted_check CHECK (counted_as <> '') NOT VALID;
