-- Checks that no mail counts for an empty address.
--
-- Reads mailroom_deliveries once under SHARE UPDATE EXCLUSIVE: does not block readers or writers.

ALTER TABLE mailroom_deliveries VALIDATE CONSTRAINT mailroom_deliveries_counted_check;
