-- Actions: creates, changes and retires them. Each needs the rights of the owner of the tables, records the operation, and
-- notifies with the payload 'queues', so that consumers read the actions again. path, has_code and number never change:
-- signatures and lines depend on them.

-- Returns 'due' if a token of an action may be emitted while its account has p_status (null: it has none), otherwise
-- 'wrong status'. A function of its own, since an inlined one may have no subquery.
CREATE OR REPLACE FUNCTION mailroom_action_state(p_action token_action, p_status account_status) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE COST 1 AS $$
DECLARE
    v_needed account_status := (SELECT a.account_status FROM mailroom_actions a WHERE a.action = p_action::text);
BEGIN
    RETURN CASE WHEN v_needed IS NULL OR v_needed = p_status THEN 'due' ELSE 'wrong status' END;
END
$$;

-- Makes the rows that every database has and that somebody has removed: the built-in actions, a queue if there is none, and, while
-- nothing waits that a copy could mail, the place where mails are sent from.
CREATE OR REPLACE FUNCTION mailroom_restore_rows() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO mailroom_actions (action, number, path, has_code, account_status, lifetime, template, security) VALUES
        ('activation', 1, '/activate', false, 'provisioned', '15 minutes', 'activation', true),
        ('password_recovery', 2, '/recover', true, 'active', '15 minutes', 'recovery', true),
        ('message', 3, NULL, false, NULL, '3 days', NULL, false)
    ON CONFLICT DO NOTHING;
    INSERT INTO jobs (job_type, last_seq) SELECT 'mailroom', 0
    WHERE NOT EXISTS (SELECT FROM jobs) AND NOT EXISTS (SELECT FROM mailroom_queues);
    INSERT INTO mailroom_home (system_identifier, database, tokens, batches, reached, number)
    SELECT p.system_identifier, p.database, p.tokens, p.batches, p.reached, mailroom_home_number() FROM mailroom_place() p
    WHERE NOT EXISTS (SELECT FROM mailroom_home) AND NOT EXISTS (SELECT FROM tokens) AND NOT EXISTS (SELECT FROM mailroom_messages);
END
$$;

-- Records an operation on an action, and lets consumers read the actions again.
CREATE OR REPLACE FUNCTION mailroom_record_action(p_kind text, p_before jsonb, p_action text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM mailroom_record_operation(p_kind, NULL, jsonb_strip_nulls(jsonb_build_object('action', p_action, 'before', p_before))
        || jsonb_build_object('after', (SELECT to_jsonb(a) FROM mailroom_actions a WHERE a.action = p_action)));
    NOTIFY token_insert, 'queues';
END
$$;

-- Creates an action. Messages of it can be asked for once this has committed. lifetime: of its messages, null: no end.
-- template: of a message that names none; null: the name of the action.
CREATE OR REPLACE FUNCTION mailroom_create_action(action text, path text DEFAULT NULL, has_code boolean DEFAULT false,
    account_status account_status DEFAULT NULL, lifetime interval DEFAULT '3 days', template text DEFAULT NULL,
    security boolean DEFAULT false, producer name DEFAULT NULL)
RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    LOCK TABLE mailroom_actions IN SHARE ROW EXCLUSIVE MODE;
    IF EXISTS (SELECT FROM mailroom_actions a WHERE a.action = mailroom_create_action.action) THEN
        RAISE EXCEPTION 'the action "%" exists', mailroom_create_action.action
            USING ERRCODE = 'unique_violation', HINT = 'mailroom_set_action() changes it';
    ELSIF EXISTS (SELECT FROM mailroom_actions a WHERE a.path = mailroom_create_action.path) THEN
        RAISE EXCEPTION 'another action has the path "%"', mailroom_create_action.path
            USING ERRCODE = 'unique_violation', HINT = 'a signature says which action it is for by the path alone';
    ELSIF mailroom_create_action.action !~ '^[a-z][a-z0-9_]{0,61}$' THEN
        RAISE EXCEPTION '"%" is not a name of an action', mailroom_create_action.action
            USING ERRCODE = 'check_violation', HINT = 'it has small letters, digits and _, and begins with a letter';
    ELSIF mailroom_create_action.path !~ '^/[a-z0-9_/-]{1,62}$' THEN
        RAISE EXCEPTION '"%" is not a path of an action', mailroom_create_action.path
            USING ERRCODE = 'check_violation', HINT = 'it begins with /, and has small letters, digits, _ and -';
    END IF;
    PERFORM mailroom_check_producer(mailroom_create_action.producer);
    INSERT INTO mailroom_actions (action, number, path, has_code, account_status, lifetime, template, security, producer)
    SELECT mailroom_create_action.action, greatest(max(a.number), 3) + 1, mailroom_create_action.path,
           coalesce(mailroom_create_action.has_code, false), mailroom_create_action.account_status,
           mailroom_create_action.lifetime, coalesce(mailroom_create_action.template, mailroom_create_action.action),
           coalesce(mailroom_create_action.security, false), mailroom_create_action.producer
    FROM mailroom_actions a;
    EXECUTE format('ALTER TYPE token_action ADD VALUE IF NOT EXISTS %L', mailroom_create_action.action);
    PERFORM mailroom_record_action('create action', NULL, mailroom_create_action.action);
END
$$;

-- Raises an error for a producer that is no role.
CREATE OR REPLACE FUNCTION mailroom_check_producer(p_producer name) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF p_producer IS NOT NULL AND NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = p_producer) THEN
        RAISE EXCEPTION 'role "%" does not exist', p_producer USING ERRCODE = 'undefined_object';
    END IF;
END
$$;

-- Returns the row of an action, which the transaction holds from then on. Raises an error for an unknown one, and for one
-- that every database has: consumers and the tables of accounts rely on it.
CREATE OR REPLACE FUNCTION mailroom_lock_action(p_action text) RETURNS mailroom_actions LANGUAGE plpgsql AS $$
DECLARE
    v_action mailroom_actions;
BEGIN
    SELECT * INTO v_action FROM mailroom_actions a WHERE a.action = p_action FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no action "%"', p_action
            USING ERRCODE = 'undefined_object', HINT = 'mailroom_create_action() creates it';
    ELSIF v_action.number <= 2 THEN
        RAISE EXCEPTION 'the action "%" is built in', p_action
            USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'create an action of your own with mailroom_create_action()';
    END IF;
    RETURN v_action;
END
$$;

-- Changes an action: an object of account_status, lifetime, template, security and producer, each as
-- mailroom_create_action() takes it.
CREATE OR REPLACE FUNCTION mailroom_set_action(action text, changes jsonb) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_before mailroom_actions := mailroom_lock_action(mailroom_set_action.action);
    v_after mailroom_actions;
    v_key text;
BEGIN
    SELECT k INTO v_key FROM jsonb_object_keys(changes) k
    WHERE k NOT IN ('account_status', 'lifetime', 'template', 'security', 'producer') LIMIT 1;
    IF v_key IN ('path', 'has_code', 'number', 'action') THEN
        RAISE EXCEPTION '% of an action never changes', v_key
            USING ERRCODE = 'feature_not_supported', HINT = 'signatures depend on it: create another action';
    ELSIF v_key IS NOT NULL THEN
        RAISE EXCEPTION 'an action has no setting "%"', v_key
            USING ERRCODE = 'invalid_parameter_value', HINT = 'settings: account_status, lifetime, template, security, producer';
    ELSIF v_before.action = 'message' AND jsonb_typeof(changes->'account_status') <> 'null' THEN
        RAISE EXCEPTION 'the action "message" is built in, and needs no account' USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'create an action of your own with mailroom_create_action()';
    END IF;
    v_after := jsonb_populate_record(v_before, changes);
    PERFORM mailroom_check_producer(v_after.producer);
    UPDATE mailroom_actions a
    SET account_status = v_after.account_status, lifetime = v_after.lifetime,
        template = CASE WHEN a.action = 'message' THEN v_after.template ELSE coalesce(v_after.template, a.action) END,
        security = coalesce(v_after.security, false), producer = v_after.producer
    WHERE a.action = v_before.action;
    PERFORM mailroom_record_action('set action', to_jsonb(v_before), v_before.action);
END
$$;

-- Refuses new messages of an action from now on. What waits is sent, and its links stay valid: the label and the row stay.
CREATE OR REPLACE FUNCTION mailroom_retire_action(action text) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_before mailroom_actions := mailroom_lock_action(mailroom_retire_action.action);
BEGIN
    IF v_before.action = 'message' THEN
        RAISE EXCEPTION 'the action "message" is built in' USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'revoke the right to insert messages instead';
    END IF;
    UPDATE mailroom_actions a SET retired_at = coalesce(a.retired_at, clock_timestamp()) WHERE a.action = v_before.action;
    PERFORM mailroom_record_action('retire action', to_jsonb(v_before), v_before.action);
END
$$;
