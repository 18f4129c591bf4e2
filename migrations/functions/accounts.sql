-- The triggers of accounts: activation tokens, addresses, times of a status, records of suspensions.

-- Refuses control characters in addresses, which would break the line of a batch. Checks only new and changed values.
-- OLD is null in an INSERT. Sets the database that it signed up in, unless a load brings that of another one. SECURITY DEFINER, so
-- that an application needs no right on the function.
CREATE OR REPLACE FUNCTION trg_before_account_insert() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF NEW.email IS DISTINCT FROM OLD.email AND NEW.email ~ '[\x01-\x1f\x7f]' THEN
        RAISE EXCEPTION 'accounts.email must not contain control characters' USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.login IS DISTINCT FROM OLD.login AND NEW.login ~ '[\x01-\x1f\x7f]' THEN
        RAISE EXCEPTION 'accounts.login must not contain control characters' USING ERRCODE = 'check_violation';
    END IF;
    NEW.mailroom_home := coalesce(NEW.mailroom_home, mailroom_home_number());
    RETURN NEW;
END
$$;

-- Gives a provisioned account its activation token; not one that was loaded from another database, where it has got it.
-- Without trg_before_account_insert it has no home, and signed up here. SECURITY DEFINER, so that a role that may insert
-- accounts needs no rights on tokens. EXECUTE is revoked, so that no other role can attach it to a trigger and create
-- tokens for any account.
CREATE OR REPLACE FUNCTION trg_after_account_insert() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF (NEW.mailroom_home = mailroom_home_number()) IS NOT FALSE THEN
        INSERT INTO tokens (account, action) VALUES (NEW.id, 'activation');
    END IF;
    RETURN NULL;
END
$$;

-- Stamps each change of status. Lifting a suspension brings an account that was never activated back to provisioned,
-- whatever the caller asked for.
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

-- Records every suspension and its end, by mailroom or by an application. An application names its user and a reason
-- with SET LOCAL mailroom.actor and mailroom.reason. SECURITY DEFINER, so that an application needs no rights on the
-- record. EXECUTE is revoked, so that no other role can attach it to a trigger and write false records.
CREATE OR REPLACE FUNCTION trg_after_account_suspension() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO mailroom_operations (kind, actor, reason, account, details)
    VALUES (CASE WHEN NEW.status = 'suspended' THEN 'suspend' ELSE 'restore' END,
            coalesce(nullif(current_setting('mailroom.actor', true), ''),
                     nullif(current_setting('application_name'), ''), session_user),
            nullif(current_setting('mailroom.reason', true), ''),
            NEW.id, jsonb_build_object('before', OLD.status, 'after', NEW.status));
    RETURN NULL;
END
$$;
