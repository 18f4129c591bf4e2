-- Takes ACCESS EXCLUSIVE on mailroom_messages for a moment, and reads no row.

DROP TRIGGER before_message_rescheduled ON mailroom_messages;
DROP FUNCTION trg_before_message_rescheduled();
