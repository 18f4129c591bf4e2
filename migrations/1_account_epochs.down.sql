-- Turns an account's times back into integer, rounded to the nearest second. Fails and changes nothing if a time lies
-- after January 2038.
--
-- Rewrites accounts under ACCESS EXCLUSIVE.

ALTER TABLE accounts
    ALTER COLUMN created_at TYPE integer,
    ALTER COLUMN created_at SET DEFAULT extract(epoch FROM now()),
    ALTER COLUMN status_changed_at TYPE integer,
    ALTER COLUMN activated_at TYPE integer,
    ALTER COLUMN suspended_at TYPE integer,
    ALTER COLUMN unsuspended_at TYPE integer;

CREATE OR REPLACE FUNCTION trg_before_account_status_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_now integer := extract(epoch FROM now());
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
