-- A message whose send_after is changed leaves at the new time.
--
-- Takes SHARE ROW EXCLUSIVE on mailroom_messages for a moment: waits for open writers, and reads no row.
--
-- The function is the one that the trigger begins with: migrations/functions makes it anew.

CREATE FUNCTION trg_before_message_rescheduled() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    RETURN NEW;
END
$$;

CREATE TRIGGER before_message_rescheduled BEFORE UPDATE OF send_after ON mailroom_messages
    FOR EACH ROW WHEN (OLD.send_after IS DISTINCT FROM NEW.send_after)
    EXECUTE FUNCTION trg_before_message_rescheduled();
