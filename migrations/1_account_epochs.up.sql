-- Stores an account's times as bigint seconds since 1970: integer ends in January 2038. Rounds down, as all comparisons
-- do, so that no row appears to be created after it was emitted. The times of tokens follow in a separate migration:
-- one migration that locks both tables could deadlock with a writer.
--
-- Rewrites accounts under ACCESS EXCLUSIVE: blocks readers and writers (some seconds per million rows).

ALTER TABLE accounts
    ALTER COLUMN created_at TYPE bigint,
    ALTER COLUMN created_at SET DEFAULT floor(extract(epoch FROM now())),
    ALTER COLUMN status_changed_at TYPE bigint,
    ALTER COLUMN activated_at TYPE bigint,
    ALTER COLUMN suspended_at TYPE bigint,
    ALTER COLUMN unsuspended_at TYPE bigint;

CREATE OR REPLACE FUNCTION trg_before_account_status_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_now bigint := floor(extract(epoch FROM now()));
BEGIN
    IF NEW.status = OLD.status THEN
        RETURN NEW;
    END IF;
    NEW.status_changed_at := v_now;
    IF NEW.status = 'suspended' THEN
        NEW.suspended_at := v_now;
        NEW.unsuspended_at := NULL;
    ELSIF NEW.status = 'active' AND OLD.status = 'provisioned' THEN
        NEW.activated_at := v_now;
    ELSIF NEW.status = 'active' AND OLD.status = 'suspended' THEN
        NEW.suspended_at := NULL;
        NEW.unsuspended_at := v_now;
        IF OLD.activated_at IS NULL THEN
            NEW.status := 'provisioned';
        END IF;
    END IF;
    RETURN NEW;
END
$$;
