-- Keys with which programs ask for mails over HTTP. Each acts as a role, whose rights are PostgreSQL's: the service that takes the requests
-- is a member of these roles, and sets the role in each transaction.

-- Raises an error unless programs may have a key of a role: what it may do beside asking for mails must be nothing that a leaked key
-- should, and the role that looks keys up must be a member of it, if there is one that is no superuser.
CREATE OR REPLACE FUNCTION mailroom_check_key_role(p_role text) RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
    c_use constant oid := 'mailroom_use_keys(bytea[], text)'::regprocedure;
    v_owner oid := (SELECT c.relowner FROM pg_class c WHERE c.oid = 'mailroom_messages'::regclass);
    v_role record;
    v_door record;
BEGIN
    SELECT r.oid, r.rolsuper OR r.rolcreaterole OR r.rolreplication OR r.rolbypassrls OR pg_has_role(r.oid, v_owner, 'MEMBER')
           OR has_column_privilege(r.oid, 'mailroom_messages', 'recipients', 'SELECT') OR has_table_privilege(r.oid, 'mailroom_messages', 'UPDATE')
           OR has_table_privilege(r.oid, 'jobs', 'UPDATE') OR has_function_privilege(r.oid, c_use, 'EXECUTE') AS is_mighty
    INTO v_role FROM pg_roles r WHERE r.rolname = p_role;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no role "%"', p_role USING ERRCODE = 'undefined_object', HINT = format('CREATE ROLE %1$I; GRANT mailroom_producer TO %1$I;', p_role);
    ELSIF v_role.is_mighty THEN
        RAISE EXCEPTION 'the role "%" may do more than ask for mails, and a key can leak', p_role USING ERRCODE = 'invalid_parameter_value',
            HINT = 'make a role for it: CREATE ROLE shop; GRANT mailroom_producer TO shop;';
    ELSIF NOT has_function_privilege(v_role.oid, to_regproc('mailroom_send')::oid, 'EXECUTE') THEN
        RAISE EXCEPTION 'the role "%" may not ask for mails', p_role USING ERRCODE = 'invalid_parameter_value',
            HINT = format('GRANT mailroom_producer TO %I;', p_role);
    END IF;
    SELECT d.rolname, pg_has_role(d.oid, v_role.oid, 'MEMBER') AS is_member INTO v_door FROM pg_roles d
    WHERE d.rolcanlogin AND NOT d.rolsuper AND NOT pg_has_role(d.oid, v_owner, 'MEMBER') AND has_function_privilege(d.oid, c_use, 'EXECUTE')
    ORDER BY is_member DESC, d.rolname LIMIT 1;
    IF v_door.is_member IS FALSE THEN
        RAISE EXCEPTION 'the role "%", which takes requests over HTTP, is no member of "%"', v_door.rolname, p_role
            USING ERRCODE = 'invalid_parameter_value', HINT = format('GRANT %I TO %I%s;', p_role, v_door.rolname,
                CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN ' WITH INHERIT FALSE' ELSE '' END);
    END IF;
END
$$;

-- Returns what mailroom_check_key_role() says of a role; null if programs may have a key of it.
CREATE OR REPLACE FUNCTION mailroom_key_problem(p_role text) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_hint text;
BEGIN
    PERFORM mailroom_check_key_role(p_role);
    RETURN NULL;
EXCEPTION WHEN invalid_parameter_value OR undefined_object THEN
    GET STACKED DIAGNOSTICS v_hint = PG_EXCEPTION_HINT;
    RETURN SQLERRM || '; ' || v_hint;
END
$$;

-- Enters a key of a role: its beginning, by which people name it, and its SHA-256. Records the operation.
CREATE OR REPLACE FUNCTION mailroom_create_key(p_id text, p_digest bytea, p_role text, p_name text, p_permission text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_owner bigint;
BEGIN
    PERFORM mailroom_check_key_role(p_role);
    -- From now on its messages are its own, and no other login's of a group.
    v_owner := mailroom_number_of(to_regrole(quote_ident(p_role))::oid);
    UPDATE mailroom_owners o SET has_keys = true WHERE o.owner = v_owner;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another transaction enters a role just now' USING ERRCODE = 'serialization_failure', HINT = 'ask again';
    END IF;
    INSERT INTO mailroom_keys (id, digest, role, name, permission) VALUES (p_id, p_digest, p_role, p_name, p_permission);
    PERFORM mailroom_record_operation('create key', NULL, jsonb_strip_nulls(jsonb_build_object(
        'key', p_id, 'role', p_role, 'name', p_name, 'permission', p_permission)));
END
$$;

-- Ends a key: nothing is stored with it any more once this has committed. Waits for what is being stored. False if there is none that is
-- good. Records the operation.
CREATE OR REPLACE FUNCTION mailroom_revoke_key(p_id text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(mailroom_lock_class('key'), hashtext(p_id));
    UPDATE mailroom_keys k SET revoked_at = clock_timestamp() WHERE k.id = p_id AND k.revoked_at IS NULL;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM mailroom_record_operation('revoke key', NULL, jsonb_build_object('key', p_id));
    RETURN true;
END
$$;

-- Returns the role of a key, and what it may be used for; nulls if it is unknown or revoked, or its role is gone or may do too much.
CREATE OR REPLACE FUNCTION mailroom_find_key(p_digest bytea, OUT role text, OUT permission text) LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    SELECT k.role, k.permission INTO role, permission
    FROM mailroom_keys k JOIN pg_roles r ON r.rolname = k.role
    WHERE k.digest = p_digest AND k.revoked_at IS NULL AND NOT r.rolsuper
      AND NOT pg_has_role(r.oid, (SELECT c.relowner FROM pg_class c WHERE c.oid = 'mailroom_messages'::regclass), 'MEMBER');
END
$$;

-- Raises an error unless all these keys are good and of a role. Until the transaction ends none of them can be revoked, so that what
-- it stores is stored before that.
CREATE OR REPLACE FUNCTION mailroom_use_keys(p_digests bytea[], p_role text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    v_id text;
    v_count bigint := 0;
BEGIN
    FOR v_id IN SELECT k.id FROM mailroom_keys k WHERE k.digest = ANY (p_digests) ORDER BY k.id LOOP
        PERFORM pg_advisory_xact_lock_shared(mailroom_lock_class('key'), hashtext(v_id));
    END LOOP;
    -- A statement of its own: it sees what the first one waited for.
    SELECT count(*) INTO v_count FROM unnest(ARRAY(SELECT DISTINCT unnest(p_digests))) d, LATERAL mailroom_find_key(d) f WHERE f.role = p_role;
    IF v_count < (SELECT count(DISTINCT d) FROM unnest(p_digests) d) THEN
        RAISE EXCEPTION 'a key is not known, or was revoked' USING ERRCODE = 'invalid_authorization_specification';
    END IF;
END
$$;
