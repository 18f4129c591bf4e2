-- Ends the set: pins search_path, gives grants back, takes SECURITY DEFINER functions from everyone, records the set.
DO $$
DECLARE
    v_schema regnamespace := quote_ident(current_schema());
    v_set text := '@checksum@';
    v_functions text[] := ARRAY[@functions@];
    v_signatures text[] := ARRAY[@signatures@];
    v_grants jsonb := coalesce(nullif(current_setting('mailroom.grants', true), ''), '{}');
    v_definers jsonb := coalesce(nullif(current_setting('mailroom.definers', true), ''), '[]');
    v_earlier text[] := '{}';
    v_grantee text;
    r record;
BEGIN
    -- The rule: a function resolves names in this schema only, whatever the caller's search_path is. Excepted are
    -- functions whose body was parsed here (RETURN), which no search_path changes, and those that queries inline: SQL,
    -- STABLE and RETURNS TABLE. A SET clause would prevent that; they see the path of the query that calls them.
    FOR r IN
        SELECT p.oid::regprocedure AS name, p.proname, p.proowner, p.proacl, p.prosecdef,
               p.prosqlbody IS NULL AND NOT (l.lanname = 'sql' AND p.provolatile = 's' AND NOT p.prosecdef
                                             AND 't' = ANY (coalesce(p.proargmodes, '{}'))) AS is_pinned
        FROM unnest(v_functions) f JOIN pg_proc p ON p.oid = to_regprocedure(v_schema || '.' || f)
        JOIN pg_language l ON l.oid = p.prolang
    LOOP
        IF r.is_pinned THEN
            EXECUTE format('ALTER FUNCTION %s SET search_path = %s, pg_temp', r.name, v_schema);
        END IF;
        -- No other role can attach a trigger function of mailroom's own tables to another one. Of the others, applications and
        -- consumers keep what the owner has given them, but not what default privileges gave when the function was created.
        IF r.prosecdef AND (r.proname LIKE 'trg\_%' OR NOT v_definers ? r.proname OR v_grants ? r.proname) THEN
            EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC%s', r.name, (
                SELECT string_agg(', ' || quote_ident(g.rolname), '')
                FROM aclexplode(r.proacl) a JOIN pg_roles g ON g.oid = a.grantee WHERE a.grantee <> r.proowner));
        END IF;
        IF v_grants ? r.proname AND NOT (r.prosecdef AND r.proname LIKE 'trg\_%') THEN
            EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', r.name);
            FOR v_grantee IN SELECT jsonb_array_elements_text(v_grants->r.proname) LOOP
                EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', r.name, v_grantee);
            END LOOP;
        END IF;
    END LOOP;
    -- The record names the sets that this database has had before, so that a mailroom knows whether its own is older.
    -- Every role may read it, and any tool can write it. A set that comes back takes its former place.
    IF to_regprocedure(v_schema || '.mailroom_function_set()') IS NOT NULL THEN
        SELECT s.earlier || s.checksum INTO v_earlier FROM mailroom_function_set() s;
        v_earlier := v_earlier[1 : coalesce(array_position(v_earlier, v_set) - 1, cardinality(v_earlier))];
    END IF;
    v_functions := ARRAY(
        SELECT format('%s(%s)', p.proname, oidvectortypes(p.proargtypes))
        FROM unnest(v_functions) WITH ORDINALITY f (name, n) JOIN pg_proc p ON p.oid = to_regprocedure(v_schema || '.' || f.name)
        ORDER BY f.n);
    EXECUTE format(
        'CREATE OR REPLACE FUNCTION mailroom_function_set('
        'OUT checksum text, OUT earlier text[], OUT functions text[], OUT signatures text[]) '
        'LANGUAGE sql IMMUTABLE PARALLEL SAFE BEGIN ATOMIC SELECT %L::text, %L::text[], %L::text[], %L::text[]; END',
        v_set, v_earlier, v_functions, v_signatures);
    -- What is stored in the one form of an address has that of these functions.
    IF to_regclass(v_schema || '.mailroom_suppressions') IS NOT NULL THEN
        EXECUTE format('UPDATE %1$s.mailroom_suppressions s SET address = %1$s.mailroom_canonical(s.address) '
                       'WHERE s.address <> %1$s.mailroom_canonical(s.address) AND NOT EXISTS ('
                       '    SELECT FROM %1$s.mailroom_suppressions o WHERE o.address = %1$s.mailroom_canonical(s.address) AND o.topic = s.topic)', v_schema);
        EXECUTE format('SELECT %s.mailroom_restore_rows()', v_schema);
    END IF;
END
$$;
