-- Deliveries: the address that each attempt was mailed to, and a trigger that keeps every outcome when another follows.
--
-- Takes ACCESS EXCLUSIVE on mailroom_deliveries for a moment: rewrites and reads no row.
--
-- The function is the one that the trigger begins with: migrations/functions makes it anew.

ALTER TABLE mailroom_deliveries ADD COLUMN address text;

COMMENT ON COLUMN mailroom_deliveries.address IS
    'the address that the last attempt was mailed to; null if nothing was mailed, as with lines';
COMMENT ON COLUMN mailroom_deliveries.earlier_attempts IS
    'outcomes of earlier attempts, oldest first: at, answered_at, state, batch, sink, address, code, reply; null if there was none; a trigger adds them';

CREATE FUNCTION trg_before_delivery_outcome() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RETURN NEW;
END
$$;

-- Each outcome is of another batch, or of another state.
CREATE TRIGGER before_delivery_outcome BEFORE UPDATE ON mailroom_deliveries
    FOR EACH ROW WHEN (OLD.batch <> NEW.batch OR OLD.state <> NEW.state)
    EXECUTE FUNCTION trg_before_delivery_outcome();
