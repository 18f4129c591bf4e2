-- Inserts an account's activation token after its row, and refuses control characters in addresses.
--
-- A BEFORE trigger used to insert the token. It also runs for a row that INSERT ... ON CONFLICT DO NOTHING then drops:
-- the token referenced no account and the commit failed. An AFTER trigger runs in the same transaction, and only for
-- rows that were inserted. Control characters would break the line of a batch. A trigger checks for them, not a
-- constraint, so that rows from an older system can still change their status.
--
-- Takes SHARE ROW EXCLUSIVE on accounts for an instant: waits for open writers, rewrites nothing.

-- SECURITY DEFINER, so that a role that may insert accounts needs no rights on tokens. EXECUTE is revoked, so that no
-- other role can attach it to a trigger and create tokens for any account.
CREATE FUNCTION trg_after_account_insert() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO tokens (account, action) VALUES (NEW.id, 'activation');
    RETURN NULL;
END
$$;

REVOKE EXECUTE ON FUNCTION trg_after_account_insert() FROM PUBLIC;

-- Default privileges of the schema may have given it to others.
DO $$
DECLARE
    v_role name;
BEGIN
    FOR v_role IN
        SELECT r.rolname
        FROM pg_proc p, aclexplode(p.proacl) a JOIN pg_roles r ON r.oid = a.grantee
        WHERE p.oid = 'trg_after_account_insert()'::regprocedure AND a.grantee <> p.proowner
    LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION trg_after_account_insert() FROM %I', v_role);
    END LOOP;
END
$$;

CREATE TRIGGER after_account_insert AFTER INSERT ON accounts
    FOR EACH ROW WHEN (NEW.status = 'provisioned') EXECUTE FUNCTION trg_after_account_insert();

-- Checks only new and changed values. OLD is null in an INSERT.
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

-- Every function resolves names in this schema only, whatever the caller's search_path is.
DO $$
DECLARE
    v_function text;
BEGIN
    FOREACH v_function IN ARRAY ARRAY['trg_before_account_insert()', 'trg_after_account_insert()',
                                      'trg_before_account_status_change()', 'trg_after_token_consumed()',
                                      'trg_after_token_inserted()']
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', v_function, current_schema());
    END LOOP;
END
$$;
