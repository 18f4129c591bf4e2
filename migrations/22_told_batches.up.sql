-- Tells applications of tokens that expired before a claim.
--
-- Takes SHARE ROW EXCLUSIVE on mailroom_batches for a moment: waits for open claims, and reads no row.
--
-- The function is the one that the trigger begins with: migrations/functions makes it anew.

CREATE FUNCTION trg_after_batch_expired() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    RETURN NULL;
END
$$;

CREATE TRIGGER after_batch_expired AFTER INSERT ON mailroom_batches
    FOR EACH ROW WHEN (NEW.skipped_expired > 0) EXECUTE FUNCTION trg_after_batch_expired();
