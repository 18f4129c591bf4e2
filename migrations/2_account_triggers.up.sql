-- An account's activation token comes after its row, and addresses hold no control characters.
--
-- The token came from a BEFORE trigger, which also runs for a row that INSERT … ON CONFLICT DO NOTHING then
-- drops: the token pointed nowhere and the commit failed. An AFTER trigger runs in the same transaction for
-- rows that are really there. Control characters would break the line that a batch is written as; a trigger
-- and no constraint, so that rows an older system left behind can still change their status.
--
-- Takes SHARE ROW EXCLUSIVE on accounts for an instant: waits for open writers, rewrites nothing.

-- With the rights of its owner, so that who may insert accounts needs none on tokens; and for nobody else's
-- triggers, which could make tokens for any account with it.
CREATE FUNCTION trg_after_account_insert() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO tokens (account, action) VALUES (NEW.id, 'activation');
    RETURN NULL;
END
$$;

REVOKE EXECUTE ON FUNCTION trg_after_account_insert() FROM PUBLIC;

CREATE TRIGGER after_account_insert AFTER INSERT ON accounts
    FOR EACH ROW WHEN (NEW.status = 'provisioned') EXECUTE FUNCTION trg_after_account_insert();

-- Looks at what is new or changed alone. OLD is null in an INSERT.
CREATE OR REPLACE FUNCTION trg_before_account_insert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.email IS DISTINCT FROM OLD.email AND NEW.email ~ '[\x01-\x1f\x7f]' THEN
        RAISE EXCEPTION 'accounts.email must not contain control characters' USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.login IS DISTINCT FROM OLD.login AND NEW.login ~ '[\x01-\x1f\x7f]' THEN
        RAISE EXCEPTION 'accounts.login must not contain control characters' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER before_account_address_change BEFORE UPDATE OF email, login ON accounts
    FOR EACH ROW EXECUTE FUNCTION trg_before_account_insert();

-- Every function looks names up in this schema alone, whatever the caller's search_path is.
DO $$
DECLARE
    v_function regprocedure;
BEGIN
    FOR v_function IN
        SELECT oid FROM pg_proc
        WHERE pronamespace = quote_ident(current_schema())::regnamespace AND prorettype = 'trigger'::regtype
          AND proname LIKE 'trg\_%'
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', v_function, current_schema());
    END LOOP;
END
$$;
