-- The record of operations: rewinds, replays, suspensions, prunings, changes of queues.
--
-- Takes SHARE ROW EXCLUSIVE on accounts for an instant: waits for open writers, rewrites nothing.

CREATE TABLE mailroom_operations (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    kind    text NOT NULL CHECK (kind IN ('rewind', 'replay', 'suspend', 'restore', 'prune',
                                     'create queue', 'set queue', 'pause queue', 'resume queue', 'drop queue',
                                     'set budget')),
    actor   text NOT NULL,
    db_user name NOT NULL DEFAULT session_user,
    reason  text,
    queue   text,
    account bigint,
    details jsonb NOT NULL DEFAULT '{}'
);

COMMENT ON TABLE mailroom_operations IS 'operations of operators and applications on queues and accounts';
COMMENT ON COLUMN mailroom_operations.actor IS
    'the setting mailroom.actor of the transaction, or else the application_name of its session';
COMMENT ON COLUMN mailroom_operations.account IS 'no foreign key: the record outlives the account';

CREATE INDEX mailroom_operations_at_idx ON mailroom_operations (at);
CREATE INDEX mailroom_operations_account_idx ON mailroom_operations (account) WHERE account IS NOT NULL;

-- Returns the ids that an operation replayed or moved the cursor over; none for a row that was inserted by hand with
-- other details than mailroom records.
CREATE FUNCTION mailroom_operation_ids(p_kind text, p_details jsonb) RETURNS int8multirange LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF p_kind = 'replay' THEN
        RETURN coalesce((p_details->>'ids')::int8multirange, '{}');
    ELSIF p_kind = 'rewind' AND p_details ? 'cursor_before' AND p_details ? 'cursor_after' THEN
        RETURN int8multirange(int8range(
            least((p_details->>'cursor_before')::bigint, (p_details->>'cursor_after')::bigint),
            greatest((p_details->>'cursor_before')::bigint, (p_details->>'cursor_after')::bigint), '(]'));
    END IF;
    RETURN '{}';
EXCEPTION WHEN data_exception THEN
    RETURN '{}';
END
$$;

-- Records every suspension and its end, by mailroom or by an application. An application names its user and a reason
-- with SET LOCAL mailroom.actor and mailroom.reason. SECURITY DEFINER, so that an application needs no rights on the
-- record. EXECUTE is revoked, so that no other role can attach it to a trigger and write false records.
CREATE FUNCTION trg_after_account_suspension() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
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

REVOKE EXECUTE ON FUNCTION trg_after_account_suspension() FROM PUBLIC;

-- Default privileges of the schema may have given it to others.
DO $$
DECLARE
    v_role name;
BEGIN
    FOR v_role IN
        SELECT r.rolname
        FROM pg_proc p, aclexplode(p.proacl) a JOIN pg_roles r ON r.oid = a.grantee
        WHERE p.oid = 'trg_after_account_suspension()'::regprocedure AND a.grantee <> p.proowner
    LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION trg_after_account_suspension() FROM %I', v_role);
    END LOOP;
END
$$;

CREATE TRIGGER after_account_suspension AFTER UPDATE OF status ON accounts
    FOR EACH ROW WHEN (OLD.status <> NEW.status AND (OLD.status = 'suspended' OR NEW.status = 'suspended'))
    EXECUTE FUNCTION trg_after_account_suspension();

DO $$
DECLARE
    v_function text;
BEGIN
    FOREACH v_function IN ARRAY ARRAY[
        'trg_after_account_suspension()', 'mailroom_operation_ids(text, jsonb)'
    ]
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', v_function, current_schema());
    END LOOP;
END
$$;
