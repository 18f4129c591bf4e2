-- Checks that only mails that were accepted, or may have been, count for send.per_recipient.
--
-- Reads mailroom_deliveries once under SHARE UPDATE EXCLUSIVE: does not block readers or writers.

ALTER TABLE mailroom_deliveries VALIDATE CONSTRAINT mailroom_deliveries_counted_check;
