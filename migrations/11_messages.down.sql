-- Deletes all messages and their tokens.
--
-- Takes ACCESS EXCLUSIVE on tokens, and reads it once.
--
-- deletes: table mailroom_messages
-- deletes: table mailroom_attachments
-- deletes: table mailroom_schedule
-- deletes: rows tokens WHERE message IS NOT NULL

DROP TABLE mailroom_schedule;
DROP TABLE mailroom_attachments;
DROP TABLE mailroom_messages;
DROP FUNCTION trg_before_attachment_insert();
DROP FUNCTION trg_after_message_insert();
DROP FUNCTION trg_before_message_insert();
DROP FUNCTION mailroom_caller();

DELETE FROM tokens WHERE message IS NOT NULL;

ALTER TABLE tokens
    DROP CONSTRAINT tokens_message_check,
    DROP COLUMN recipient,
    DROP COLUMN message,
    ALTER COLUMN secret SET NOT NULL,
    ALTER COLUMN account SET NOT NULL;
