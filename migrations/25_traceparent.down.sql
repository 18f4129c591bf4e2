-- Takes ACCESS EXCLUSIVE on tokens for a moment, and reads no row.
--
-- deletes: column tokens.traceparent

ALTER TABLE tokens DROP COLUMN traceparent;
