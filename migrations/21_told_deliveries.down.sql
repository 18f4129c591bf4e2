-- Takes ACCESS EXCLUSIVE on mailroom_deliveries for a moment, and reads no row.

DROP TRIGGER after_delivery_update ON mailroom_deliveries;
DROP TRIGGER after_delivery_insert ON mailroom_deliveries;
DROP FUNCTION trg_after_delivery_outcomes();
