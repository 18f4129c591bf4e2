-- Limits: how many mails a role may ask for, whichever way: by a function, INSERT, COPY or SMTP.

-- Takes p_mails from the limits of p_roles, or raises an error: MR010 if they may be asked for later. The generic cell rate algorithm, as
-- mailroom_allowance() has it, with a burst of a whole period. Until when the taken ones last, in microseconds since 1970, is in a sequence
-- for each limit: no snapshot hides its value, and no transaction keeps others from it. So those of one role neither wait for each
-- other nor fail in REPEATABLE READ, none deadlocks, and mails of one that is rolled back count. The block ends by an error since that
-- releases its locks, whose transaction may go on for hours.
CREATE OR REPLACE FUNCTION mailroom_keep_limits(p_roles text[], p_mails bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_over record;
    r record;
BEGIN
    SELECT l.role, l.mails INTO v_over FROM mailroom_limits l WHERE l.role = ANY (p_roles) AND l.mails < p_mails ORDER BY l.mails LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '% mails are more than the role "%" may ask for at once', p_mails, v_over.role USING ERRCODE = 'check_violation',
            HINT = format('ask for at most %s by a statement; each recipient counts', v_over.mails);
    END IF;
    BEGIN
        -- In one order, so that nobody waits for one who waits for him.
        PERFORM pg_advisory_xact_lock(mailroom_lock_class('limit'), l.number)
        FROM (SELECT l.number FROM mailroom_limits l WHERE l.role = ANY (p_roles) ORDER BY l.number) l;
        FOR r IN
            SELECT l.role, l.mails, l.period, s.name, greatest(pg_sequence_last_value(s.name), n.now) + ceil(n.period * p_mails / l.mails)::bigint AS until,
                   greatest(pg_sequence_last_value(s.name), n.now) - n.now - n.period + ceil(n.period * p_mails / l.mails) AS wait
            FROM mailroom_limits l,
            LATERAL (SELECT format('mailroom_limit_%s', l.number)::regclass AS name) s,
            LATERAL (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now, extract(epoch FROM l.period) * 1000000 AS period) n
            WHERE l.role = ANY (p_roles)
            ORDER BY wait DESC
        LOOP
            IF r.wait > 0 THEN
                v_over := r;
                EXIT;
            END IF;
            PERFORM setval(r.name, r.until);
        END LOOP;
        RAISE EXCEPTION 'looked at the limits' USING ERRCODE = 'MR011';
    EXCEPTION WHEN SQLSTATE 'MR011' THEN
        NULL;
    END;
    IF v_over IS NOT NULL THEN
        RAISE EXCEPTION 'the role "%" has asked for as many mails as it may: % in %', v_over.role, v_over.mails, v_over.period
            USING ERRCODE = 'MR010', HINT = format('try again in %s s; mailroom message roles shows the limits', ceil(v_over.wait / 1000000));
    END IF;
END
$$;

-- Returns the limit that leaves a role least: how many mails, and in microseconds the period and the part of it that is used. No row without one. For
-- the service that tells whoever has a key.
CREATE OR REPLACE FUNCTION mailroom_limit_of(p_role text) RETURNS TABLE (mails integer, period bigint, used bigint) LANGUAGE plpgsql SECURITY DEFINER AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT l.mails, n.period, greatest(pg_sequence_last_value(format('mailroom_limit_%s', l.number)::regclass) - n.now, 0)
        FROM mailroom_limits l, LATERAL (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now,
                                                (extract(epoch FROM l.period) * 1000000)::bigint AS period) n
        WHERE l.role IN (session_user::text, p_role, pg_get_userbyid(mailroom_owning_role(to_regrole(quote_ident(p_role))::oid))::text)
        ORDER BY (n.period - greatest(pg_sequence_last_value(format('mailroom_limit_%s', l.number)::regclass) - n.now, 0))::numeric * l.mails / n.period
        LIMIT 1;
END
$$;

-- Lets a role ask for p_mails in each p_period; p_mails null: for any number. SECURITY DEFINER, since it creates a sequence, which only
-- the owner of the schema may.
CREATE OR REPLACE FUNCTION mailroom_limit(p_role text, p_mails integer, p_period interval) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    v_number integer;
    v_grantee text;
BEGIN
    LOCK TABLE mailroom_limits IN SHARE ROW EXCLUSIVE MODE;
    IF p_mails IS NULL THEN
        DELETE FROM mailroom_limits l WHERE l.role = p_role;
        IF FOUND THEN
            PERFORM mailroom_record_operation('set limit', NULL, jsonb_build_object('role', p_role));
        END IF;
        RETURN;
    ELSIF to_regrole(quote_ident(p_role)) IS NULL THEN
        RAISE EXCEPTION 'role "%" does not exist', p_role USING ERRCODE = 'undefined_object';
    END IF;
    PERFORM mailroom_record_operation('set limit', NULL, jsonb_build_object(
        'role', p_role, 'mails', p_mails, 'milliseconds', (extract(epoch FROM p_period) * 1000)::bigint));
    UPDATE mailroom_limits l SET mails = p_mails, period = p_period WHERE l.role = p_role;
    IF FOUND THEN
        RETURN;
    END IF;
    v_number := (SELECT min(n) FROM generate_series(1, (SELECT count(*) + 1 FROM mailroom_limits)) n
                 WHERE NOT EXISTS (SELECT FROM mailroom_limits l WHERE l.number = n));
    INSERT INTO mailroom_limits (role, number, mails, period) VALUES (p_role, v_number, p_mails, p_period);
    -- It may be there, of a limit that has gone.
    IF to_regclass(format('mailroom_limit_%s', v_number)) IS NULL THEN
        EXECUTE format('CREATE SEQUENCE mailroom_limit_%s OWNED BY mailroom_limits.number', v_number);
    END IF;
    PERFORM setval(format('mailroom_limit_%s', v_number)::regclass, 1);
    -- What default privileges gave: who may set it has no limit.
    FOR v_grantee IN
        SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END
        FROM pg_class c, aclexplode(c.relacl) a
        WHERE c.oid = format('mailroom_limit_%s', v_number)::regclass AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('REVOKE ALL ON SEQUENCE mailroom_limit_%s FROM %s', v_number, v_grantee);
    END LOOP;
END
$$;
