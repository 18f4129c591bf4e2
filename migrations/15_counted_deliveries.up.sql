-- Deliveries: under which address a mail counts for send.per_recipient. Only a sender with that setting fills it.
--
-- Takes ACCESS EXCLUSIVE on mailroom_deliveries for a moment: rewrites and reads no row.

ALTER TABLE mailroom_deliveries
    ADD COLUMN counted_as text,
    ADD CONSTRAINT mailroom_deliveries_counted_check CHECK (counted_as <> '') NOT VALID;

COMMENT ON COLUMN mailroom_deliveries.counted_as IS
    'the address, in lower case, whose mails send.per_recipient counts; null if the sender has no such limit, or nothing was accepted';
