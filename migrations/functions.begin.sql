-- Makes the functions of migrations/functions anew, in one transaction. Locks no table; calls go on meanwhile.
--
-- A function with the same signature is replaced, and keeps its owner and grants. CREATE OR REPLACE cannot change a
-- signature, so this begins by dropping the functions of the earlier set that this one does not have, or has with
-- another signature, and those whose bodies name such a function. functions.end.sql gives their grants to the new ones, and
-- takes EXECUTE from everyone on SECURITY DEFINER functions that are not among those of before.

-- The files come in the order of their names, in which a body may name a function that is made later.
SET LOCAL check_function_bodies = off;

DO $$
DECLARE
    v_schema regnamespace := quote_ident(current_schema());
    v_functions text[] := ARRAY[@functions@];
    v_signatures text[] := ARRAY[@signatures@];
    v_taken text;
    v_gone text;
    v_grants jsonb;
BEGIN
    PERFORM set_config('mailroom.grants', '{}', true), set_config('mailroom.definers', '[]', true);
    IF to_regprocedure(v_schema || '.mailroom_function_set()') IS NULL THEN
        SELECT f INTO v_taken FROM unnest(v_functions) f
        WHERE f <> ALL (ARRAY[@kept@]) AND to_regprocedure(v_schema || '.' || f) IS NOT NULL LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'function "%" already exists with same argument types', split_part(v_taken, '(', 1)
                USING ERRCODE = 'duplicate_function';
        END IF;
        RETURN;
    END IF;
    WITH RECURSIVE ours AS (
        SELECT p.oid, p.proname, p.proowner, p.proacl, n.signature
        FROM mailroom_function_set() s, unnest(s.functions, s.signatures) n (function, signature)
        JOIN pg_proc p ON format('%s(%s)', p.proname, oidvectortypes(p.proargtypes)) = n.function
        WHERE p.pronamespace = v_schema),
    gone AS (
        SELECT o.oid FROM ours o WHERE o.signature <> ALL (v_signatures)
        UNION
        SELECT o.oid FROM gone g
        JOIN pg_depend d ON d.refclassid = 'pg_proc'::regclass AND d.refobjid = g.oid AND d.classid = 'pg_proc'::regclass
        JOIN ours o ON o.oid = d.objid),
    grants AS (
        SELECT o.proname, ARRAY(
            SELECT coalesce(quote_ident(r.rolname), 'PUBLIC') || CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END
            FROM aclexplode(o.proacl) a LEFT JOIN pg_roles r ON r.oid = a.grantee WHERE a.grantee <> o.proowner) AS grantees
        FROM gone g JOIN ours o ON o.oid = g.oid WHERE o.proacl IS NOT NULL)
    SELECT (SELECT string_agg(g.oid::regprocedure::text, ', ') FROM gone g),
           (SELECT jsonb_object_agg(a.proname, a.grantees) FROM grants a)
    INTO v_gone, v_grants;
    PERFORM set_config('mailroom.grants', coalesce(v_grants, '{}')::text, true);
    PERFORM set_config('mailroom.definers', (
        SELECT coalesce(jsonb_agg(p.proname), '[]') FROM pg_proc p
        WHERE p.pronamespace = v_schema AND p.prosecdef
          AND p.proname = ANY (SELECT split_part(f, '(', 1) FROM mailroom_function_set() s, unnest(s.functions) f))::text, true);
    IF v_gone IS NOT NULL THEN
        EXECUTE 'DROP FUNCTION ' || v_gone;
    END IF;
END
$$;
