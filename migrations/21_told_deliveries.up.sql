-- Tells applications of the outcomes of deliveries.
--
-- Takes SHARE ROW EXCLUSIVE on mailroom_deliveries for a moment: waits for open writers, and reads no row.
--
-- The function is the one that the triggers begin with: migrations/functions makes it anew.

CREATE FUNCTION trg_after_delivery_outcomes() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    RETURN NULL;
END
$$;

CREATE TRIGGER after_delivery_insert AFTER INSERT ON mailroom_deliveries REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION trg_after_delivery_outcomes();
-- Each outcome is of another batch, or of another state.
CREATE TRIGGER after_delivery_update AFTER UPDATE ON mailroom_deliveries
    FOR EACH ROW WHEN (NEW.state <> 'deferred' AND (OLD.batch <> NEW.batch OR OLD.state <> NEW.state))
    EXECUTE FUNCTION trg_after_delivery_outcomes();
