-- Drops the trigger that keeps earlier outcomes of deliveries, and the addresses of the last ones.
--
-- Takes ACCESS EXCLUSIVE on mailroom_deliveries for a moment: rewrites and reads no row.
--
-- deletes: column mailroom_deliveries.address

DROP TRIGGER before_delivery_outcome ON mailroom_deliveries;
DROP FUNCTION trg_before_delivery_outcome();

ALTER TABLE mailroom_deliveries DROP COLUMN address;

COMMENT ON COLUMN mailroom_deliveries.earlier_attempts IS
    'outcomes of earlier attempts, oldest first: at, state, sink, code, reply; null if there was none';
