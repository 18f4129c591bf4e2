-- Turns an account's times back into integer, rounded to the nearest second, creates the activation token in a BEFORE
-- trigger again, stops checking addresses and recording suspensions, and keeps the messages of a deleted account. Fails and
-- changes nothing if a time lies after January 2038.
--
-- Rewrites accounts under ACCESS EXCLUSIVE.

DROP TRIGGER after_account_delete ON accounts;
DROP FUNCTION trg_after_account_delete();
DROP TRIGGER after_account_suspension ON accounts;
DROP FUNCTION trg_after_account_suspension();
DROP TRIGGER before_account_address_change ON accounts;
DROP TRIGGER after_account_insert ON accounts;
DROP FUNCTION trg_after_account_insert();

CREATE OR REPLACE FUNCTION trg_before_account_insert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status = 'provisioned' THEN
        INSERT INTO tokens (account, action) VALUES (NEW.id, 'activation');
    END IF;
    RETURN NEW;
END
$$;

ALTER TABLE accounts
    DROP COLUMN mailroom_home,
    ALTER COLUMN created_at TYPE integer,
    ALTER COLUMN created_at SET DEFAULT extract(epoch FROM now()),
    ALTER COLUMN status_changed_at TYPE integer,
    ALTER COLUMN activated_at TYPE integer,
    ALTER COLUMN suspended_at TYPE integer,
    ALTER COLUMN unsuspended_at TYPE integer;
