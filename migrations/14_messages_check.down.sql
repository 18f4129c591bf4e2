-- Checks new tokens alone.
--
-- Takes ACCESS EXCLUSIVE on tokens for a moment: rewrites and reads no row.

ALTER TABLE tokens
    DROP CONSTRAINT tokens_message_check,
    ADD CONSTRAINT tokens_message_check CHECK (message IS NOT NULL OR (account IS NOT NULL AND secret IS NOT NULL)) NOT VALID;
