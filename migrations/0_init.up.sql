-- Accounts, tokens and the queue's cursor, with the triggers that keep them in step.
--
-- Creates everything anew, so it locks nothing that others use. Needs the right to create an extension the
-- first time: pgcrypto, for the tokens' secrets.

CREATE EXTENSION IF NOT EXISTS pgcrypto;

-- Until the end of the transaction the functions of pgcrypto are found, wherever it is installed.
DO $$
BEGIN
    PERFORM set_config('search_path', format('%s, %I', current_setting('search_path'), n.nspname), true)
    FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
    WHERE e.extname = 'pgcrypto' AND n.nspname <> ALL (current_schemas(false));
END
$$;

CREATE TYPE account_status AS ENUM ('provisioned', 'active', 'suspended');

CREATE TABLE accounts (
    id                bigserial PRIMARY KEY,
    email             varchar(254) UNIQUE NOT NULL,
    status            account_status DEFAULT 'provisioned' NOT NULL,
    login             varchar(254) UNIQUE NOT NULL,
    created_at        integer DEFAULT extract(epoch FROM now()) NOT NULL,
    status_changed_at integer,
    activated_at      integer,
    suspended_at      integer,
    unsuspended_at    integer
);

CREATE TYPE token_action AS ENUM ('activation', 'password_recovery');

CREATE TABLE tokens (
    id          bigserial PRIMARY KEY,
    action      token_action NOT NULL,
    secret      bytea DEFAULT gen_random_bytes(32) UNIQUE NOT NULL,
    code        varchar(5) DEFAULT lpad(to_char(random() * 100000, 'FM00000'), 5, '0'),
    account     bigint NOT NULL,
    expires_at  integer DEFAULT extract(epoch FROM now() + interval '15 minute') NOT NULL,
    consumed_at integer,
    created_at  integer DEFAULT extract(epoch FROM now()) NOT NULL,

    FOREIGN KEY (account) REFERENCES accounts (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
);

-- An account that begins as provisioned gets its activation token in the same transaction, or neither exists.
CREATE FUNCTION trg_before_account_insert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status = 'provisioned' THEN
        INSERT INTO tokens (account, action) VALUES (NEW.id, 'activation');
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER before_account_insert BEFORE INSERT ON accounts
    FOR EACH ROW EXECUTE FUNCTION trg_before_account_insert();

-- Stamps each change of status. Lifting a suspension brings an account that was never activated back to
-- provisioned, whatever the caller asked for.
CREATE FUNCTION trg_before_account_status_change() RETURNS trigger LANGUAGE plpgsql AS $$
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

CREATE TRIGGER before_account_status_change BEFORE UPDATE OF status ON accounts
    FOR EACH ROW EXECUTE FUNCTION trg_before_account_status_change();

-- Consuming an activation token activates its account.
CREATE FUNCTION trg_after_token_consumed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.action = 'activation' THEN
        UPDATE accounts SET status = 'active' WHERE id = NEW.account AND status = 'provisioned';
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER after_token_consumed AFTER UPDATE OF consumed_at ON tokens
    FOR EACH ROW WHEN (NEW.consumed_at IS NOT NULL AND OLD.consumed_at IS NULL)
    EXECUTE FUNCTION trg_after_token_consumed();

-- Wakes whoever listens. Several tokens in one transaction give one notification.
CREATE FUNCTION trg_after_token_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NOTIFY token_insert;
    RETURN NULL;
END
$$;

CREATE TRIGGER after_token_inserted AFTER INSERT ON tokens
    FOR EACH ROW EXECUTE FUNCTION trg_after_token_inserted();

CREATE TYPE job_type AS ENUM ('mailroom');

CREATE TABLE jobs (
    job_type job_type PRIMARY KEY,
    last_seq bigint
);

INSERT INTO jobs (job_type, last_seq) VALUES ('mailroom', 0);

CREATE INDEX accounts_id_status_idx ON accounts (id, status);
CREATE INDEX tokens_id_expires_consumed_action_idx ON tokens (id, expires_at, consumed_at, action);
