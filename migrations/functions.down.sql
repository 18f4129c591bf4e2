-- Drops the functions of migrations/functions; triggers and defaults get the functions that they began with. Locks no
-- table. A running collector fails at its next claim.

-- A body that was parsed depends on functions that go. It is what the default begins with.
CREATE OR REPLACE FUNCTION mailroom_owner() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN NULL;
END
$$;

DO $$
BEGIN
    EXECUTE (
        SELECT 'DROP FUNCTION mailroom_function_set()' || coalesce(string_agg(', ' || p.oid::regprocedure, ''), '')
        FROM mailroom_function_set() s, unnest(s.functions) f
        JOIN pg_proc p ON format('%s(%s)', p.proname, oidvectortypes(p.proargtypes)) = f
        WHERE p.pronamespace = quote_ident(current_schema())::regnamespace AND f <> ALL (ARRAY[@kept@]));
END
$$;
