-- Creates the activation token in a BEFORE trigger again, and stops checking addresses.
--
-- Takes ACCESS EXCLUSIVE on accounts for an instant.

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

ALTER FUNCTION trg_before_account_status_change() RESET search_path;
ALTER FUNCTION trg_after_token_consumed() RESET search_path;
ALTER FUNCTION trg_after_token_inserted() RESET search_path;
