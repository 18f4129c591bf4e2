-- Whom a message belongs to: the role through which its sender may send. Logins come and go, and are renamed; so a message belongs to
-- the group that has the right, by a number of mailroom_owners.

-- True if a role may ask for messages.
CREATE OR REPLACE FUNCTION mailroom_may_send(p_role oid) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN has_any_column_privilege(p_role, 'mailroom_messages', 'INSERT')
        OR coalesce(has_function_privilege(p_role, to_regproc('mailroom_send')::oid, 'EXECUTE'), false);
END
$$;

-- Returns the role that the messages of p_role belong to. A role that a GRANT names, that cannot log in, or that has keys, is a group of
-- its own: they are its own. Those of another login belong to the nearest such role that it is a member of and that may send; among several of one
-- distance to that of the lowest oid. Those of a superuser belong to the owner of the tables, or to himself if he has had messages as
-- that owner, and those of a login that has the right as everyone has it to the login itself.
CREATE OR REPLACE FUNCTION mailroom_owning_role(p_role oid) RETURNS oid LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_table record;
    v_role oid;
BEGIN
    SELECT c.relowner, c.relacl INTO v_table FROM pg_class c WHERE c.oid = 'mailroom_messages'::regclass;
    IF (SELECT r.rolsuper FROM pg_roles r WHERE r.oid = p_role) THEN
        RETURN coalesce((SELECT o.role FROM mailroom_owners o WHERE o.role = p_role AND o.name = pg_get_userbyid(p_role)::text LIMIT 1), v_table.relowner);
    END IF;
    WITH RECURSIVE grants AS (
        SELECT a.grantee
        FROM (SELECT v_table.relacl AS acl
              UNION ALL SELECT t.attacl FROM pg_attribute t WHERE t.attrelid = 'mailroom_messages'::regclass AND t.attacl IS NOT NULL
              UNION ALL SELECT coalesce(p.proacl, acldefault('f', p.proowner)) FROM pg_proc p
                        WHERE p.oid IN (to_regproc('mailroom_send')::oid, to_regproc('mailroom_submit')::oid)) g,
             aclexplode(g.acl) a
        WHERE a.privilege_type IN ('INSERT', 'EXECUTE')),
    keyed AS (SELECT o.role FROM mailroom_owners o WHERE o.has_keys AND o.name = pg_get_userbyid(o.role)::text),
    roles (role, distance, is_group) AS (
        SELECT r.oid, 0, NOT r.rolcanlogin OR r.oid IN (SELECT v_table.relowner UNION ALL SELECT g.grantee FROM grants g UNION ALL SELECT k.role FROM keyed k)
        FROM pg_roles r WHERE r.oid = p_role
        UNION
        SELECT r.oid, x.distance + 1, NOT r.rolcanlogin OR r.oid IN (SELECT v_table.relowner UNION ALL SELECT g.grantee FROM grants g UNION ALL SELECT k.role FROM keyed k)
        FROM roles x JOIN pg_auth_members m ON m.member = x.role JOIN pg_roles r ON r.oid = m.roleid
        WHERE NOT x.is_group AND (mailroom_may_send(r.oid) OR has_function_privilege(r.oid, to_regproc('mailroom_submit')::oid, 'EXECUTE'))
          AND NOT EXISTS (SELECT FROM grants g WHERE g.grantee = 0))
    SELECT x.role INTO v_role FROM roles x WHERE x.is_group ORDER BY x.distance, x.role LIMIT 1;
    RETURN coalesce(v_role, p_role);
END
$$;

-- Learns whose the messages of the caller are, and writes it into settings of the session: the caller, the role and its number.
CREATE OR REPLACE FUNCTION mailroom_learn_owner() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_role oid := mailroom_owning_role(to_regrole(quote_ident(mailroom_caller()))::oid);
    v_owner bigint := (SELECT o.owner FROM mailroom_owners o WHERE o.role = v_role AND o.name = pg_get_userbyid(v_role)::text);
BEGIN
    v_owner := coalesce(v_owner, mailroom_find_owner(v_role));
    PERFORM set_config('mailroom.caller', mailroom_caller(), false), set_config('mailroom.role', v_role::text, false),
            set_config('mailroom.owner', v_owner::text, false);
    RETURN v_owner;
END
$$;

CREATE OR REPLACE FUNCTION mailroom_learn_role() RETURNS oid LANGUAGE plpgsql AS $$
BEGIN
    PERFORM mailroom_learn_owner();
    RETURN current_setting('mailroom.role');
END
$$;

-- Returns the role that messages of the caller belong to. He could write the settings: so they count only if he is a member of the role,
-- and could send as that one anyway. Inlined.
CREATE OR REPLACE FUNCTION mailroom_own_role() RETURNS oid LANGUAGE sql VOLATILE
RETURN CASE WHEN current_setting('mailroom.caller', true) = mailroom_caller()
                 AND pg_has_role(mailroom_caller(), nullif(current_setting('mailroom.role', true), '')::oid, 'MEMBER')
            THEN current_setting('mailroom.role', true)::oid ELSE mailroom_learn_role() END;

-- Returns the number of the role that messages of the caller belong to, as the settings have it: the trigger after_message_insert looks
-- whether it is true. Inlined: it is the default of a column.
CREATE OR REPLACE FUNCTION mailroom_owner() RETURNS bigint LANGUAGE sql VOLATILE
RETURN CASE WHEN current_setting('mailroom.caller', true) = mailroom_caller()
                 AND pg_has_role(mailroom_caller(), nullif(current_setting('mailroom.role', true), '')::oid, 'MEMBER')
            THEN nullif(current_setting('mailroom.owner', true), '')::bigint ELSE mailroom_learn_owner() END;

-- Returns the number of a role that is not in mailroom_owners as it is named now: it was renamed, or dropped and made again, or this is
-- a copy in another cluster, where an oid means another role; or it is new, and its number is its oid, if that is free.
CREATE OR REPLACE FUNCTION mailroom_find_owner(p_role oid) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_is_home boolean := mailroom_home_problem(NULL) IS NULL;
    v_owner bigint := (SELECT o.owner FROM mailroom_owners o WHERE o.role = p_role AND v_is_home);
BEGIN
    IF v_owner IS NULL THEN
        SELECT max(o.owner) INTO v_owner FROM mailroom_owners o
        WHERE o.name = pg_get_userbyid(p_role)::text AND NOT (v_is_home AND EXISTS (SELECT FROM pg_roles r WHERE r.oid = o.role));
    END IF;
    IF v_owner IS NULL THEN
        v_owner := p_role::bigint;
        WHILE EXISTS (SELECT FROM mailroom_owners o WHERE o.owner = v_owner) LOOP
            v_owner := v_owner + 4294967296;
        END LOOP;
    END IF;
    RETURN v_owner;
END
$$;

-- Returns the number of a role that messages belong to, and enters the role, so that its name is known when it has gone. Waits for nobody: while
-- another transaction enters one, that is left to the next message.
CREATE OR REPLACE FUNCTION mailroom_number_of(p_role oid) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_name text := pg_get_userbyid(p_role);
    v_owner bigint := (SELECT o.owner FROM mailroom_owners o WHERE o.role = p_role AND o.name = v_name);
BEGIN
    IF v_owner IS NOT NULL THEN
        RETURN v_owner;
    END IF;
    v_owner := mailroom_find_owner(p_role);
    IF NOT pg_is_in_recovery() AND pg_try_advisory_xact_lock(mailroom_lock_class('owners'), hashtext('')) THEN
        IF mailroom_home_problem(NULL) IS NOT NULL THEN
            PERFORM mailroom_renew_owners();
        END IF;
        UPDATE mailroom_owners o SET role = p_role, name = v_name WHERE o.owner = v_owner;
        IF NOT FOUND THEN
            INSERT INTO mailroom_owners (owner, role, name) VALUES (v_owner, p_role, v_name) ON CONFLICT DO NOTHING;
        END IF;
    END IF;
    RETURN v_owner;
END
$$;

-- Returns the number of the role that messages of the caller belong to, whatever the settings say.
CREATE OR REPLACE FUNCTION mailroom_true_owner() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_role oid := mailroom_own_role();
BEGIN
    RETURN coalesce((SELECT o.owner FROM mailroom_owners o WHERE o.role = v_role AND o.name = pg_get_userbyid(v_role)::text),
                    mailroom_find_owner(v_role));
END
$$;

-- Finds the roles of mailroom_owners by their names: in a copy, which may be in another cluster, an oid means another role.
CREATE OR REPLACE FUNCTION mailroom_renew_owners() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE mailroom_owners SET role = NULL WHERE role IS NOT NULL;
    UPDATE mailroom_owners o SET role = r.oid FROM pg_roles r
    WHERE r.rolname = o.name AND o.owner = (SELECT max(x.owner) FROM mailroom_owners x WHERE x.name = o.name);
END
$$;

-- Returns the role that a number means; null if there is none now.
CREATE OR REPLACE FUNCTION mailroom_role_of(p_owner bigint) RETURNS oid LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_entered record;
BEGIN
    SELECT o.role, o.name INTO v_entered FROM mailroom_owners o WHERE o.owner = p_owner;
    IF NOT FOUND THEN
        RETURN (SELECT r.oid FROM pg_roles r WHERE r.oid::bigint = p_owner);
    END IF;
    RETURN coalesce((SELECT r.oid FROM pg_roles r
                     WHERE r.oid = v_entered.role AND (r.rolname = v_entered.name OR mailroom_home_problem(NULL) IS NULL)),
                    to_regrole(quote_ident(v_entered.name))::oid);
END
$$;

-- True if a message of p_owner is the caller's, or of a role that the caller is a member of; or if the caller has p_privilege on
-- recipients of all.
CREATE OR REPLACE FUNCTION mailroom_is_own(p_owner bigint, p_privilege text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN has_column_privilege(mailroom_caller(), 'mailroom_messages', 'recipients', p_privilege)
        OR (p_owner = mailroom_true_owner()) IS TRUE
        OR coalesce(pg_has_role(mailroom_caller(), mailroom_role_of(p_owner), 'MEMBER'), false);
END
$$;

-- Returns the name of the role that a number means; of one that has gone, its last.
CREATE OR REPLACE FUNCTION mailroom_owner_name(p_owner bigint) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce(pg_get_userbyid(mailroom_role_of(p_owner))::text, (SELECT o.name FROM mailroom_owners o WHERE o.owner = p_owner));
END
$$;

-- Raises the error for a message that is not the caller's. It names the role: who may ask about messages may know the names of roles.
CREATE OR REPLACE FUNCTION mailroom_refuse_other(p_message bigint, p_owner bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_name text := coalesce(mailroom_owner_name(p_owner), '(none)');
BEGIN
    RAISE EXCEPTION 'message % belongs to the role "%", and not to "%"', p_message, v_name, mailroom_caller()
        USING ERRCODE = 'insufficient_privilege',
              HINT = format(CASE WHEN to_regrole(quote_ident(v_name)) IS NULL THEN 'that role is gone: CREATE ROLE %1$I; GRANT %1$I TO %2$I;'
                                 ELSE 'ask as a member of that role: SET ROLE %1$I, or GRANT %1$I TO %2$I' END, v_name, mailroom_caller());
END
$$;

-- Raises an error if one of the messages that a statement has inserted names an owner that its sender is no member of.
CREATE OR REPLACE FUNCTION mailroom_check_owners(p_senders text[], p_owners bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_sender text;
BEGIN
    SELECT u.sender INTO v_sender FROM unnest(p_senders, p_owners) u (sender, owner)
    WHERE coalesce(pg_has_role(to_regrole(quote_ident(u.sender))::oid, mailroom_role_of(u.owner), 'MEMBER'), false) IS FALSE LIMIT 1;
    IF FOUND AND NOT pg_has_role(mailroom_caller(), (SELECT c.relowner FROM pg_class c WHERE c.oid = 'mailroom_messages'::regclass), 'MEMBER') THEN
        RAISE EXCEPTION 'a message of the role "%" cannot belong to another', v_sender
            USING ERRCODE = 'insufficient_privilege', HINT = 'leave owner out';
    END IF;
END
$$;
