-- Accounts: times as bigint seconds since 1970, rounded down like those of tokens, an activation token after the row, no
-- control characters in addresses; what hangs on an account follows its suspension and its deletion.
--
-- A BEFORE trigger used to insert the activation token. It also runs for a row that INSERT ... ON CONFLICT DO NOTHING then
-- drops: the token referenced no account and the commit failed. An AFTER trigger runs in the same transaction, and only for
-- rows that were inserted. Control characters would break the line of a batch. A trigger checks for them, not a constraint,
-- so that rows of the original system can still change their status.
--
-- Rewrites accounts under ACCESS EXCLUSIVE: blocks readers and writers (some seconds per million rows).
--
-- The functions are those that the triggers begin with: migrations/functions makes them anew.

ALTER TABLE accounts
    ALTER COLUMN created_at TYPE bigint,
    ALTER COLUMN created_at SET DEFAULT floor(extract(epoch FROM now())),
    ALTER COLUMN status_changed_at TYPE bigint,
    ALTER COLUMN activated_at TYPE bigint,
    ALTER COLUMN suspended_at TYPE bigint,
    ALTER COLUMN unsuspended_at TYPE bigint;

-- Without a default, which needs the right to execute its function: a trigger sets it.
ALTER TABLE accounts ADD COLUMN mailroom_home integer DEFAULT mailroom_home_number();
ALTER TABLE accounts ALTER COLUMN mailroom_home DROP DEFAULT;
COMMENT ON COLUMN accounts.mailroom_home IS 'the number of the database where it signed up; of another one, it gets no activation token here';

CREATE FUNCTION trg_after_account_insert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tokens (account, action) VALUES (NEW.id, 'activation');
    RETURN NULL;
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

-- Suspensions are recorded from the functions on.
CREATE FUNCTION trg_after_account_suspension() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RETURN NULL;
END
$$;

CREATE TRIGGER after_account_suspension AFTER UPDATE OF status ON accounts
    FOR EACH ROW WHEN (OLD.status <> NEW.status AND (OLD.status = 'suspended' OR NEW.status = 'suspended'))
    EXECUTE FUNCTION trg_after_account_suspension();

-- The messages of an account are deleted with it, as its tokens are.
CREATE FUNCTION trg_after_account_delete() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    RETURN NULL;
END
$$;

CREATE TRIGGER after_account_delete AFTER DELETE ON accounts REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION trg_after_account_delete();
