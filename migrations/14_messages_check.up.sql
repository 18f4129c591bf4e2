-- Checks that every token without a message has an account and a secret, as it had before there were messages.
--
-- Reads tokens once under SHARE UPDATE EXCLUSIVE: does not block readers or writers.

ALTER TABLE tokens VALIDATE CONSTRAINT tokens_message_check;
