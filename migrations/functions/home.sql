-- Where the schema lives. A copy of it, restored from a dump or made of a template, mails nobody until an operator adopts it.

-- Returns the oid of this database, as pg_locks has it. Inlined.
CREATE OR REPLACE FUNCTION mailroom_this_database() RETURNS TABLE (oid oid) LANGUAGE sql STABLE AS $$
    SELECT d.oid FROM pg_database d WHERE d.datname = current_database()
$$;

-- Returns what tells this place from that of a copy, in the columns of mailroom_home. CREATE DATABASE changes the oid of the
-- database, and a dump those of the tables; a failover, a promotion and a new name change none, and pg_upgrade changes only the
-- system's identifier.
CREATE OR REPLACE FUNCTION mailroom_place(OUT system_identifier bigint, OUT database oid, OUT tokens oid, OUT batches oid, OUT reached xid8)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF has_function_privilege('pg_control_system()', 'EXECUTE') THEN
        SELECT c.system_identifier INTO system_identifier FROM pg_control_system() c;
    END IF;
    SELECT d.oid INTO database FROM mailroom_this_database() d;
    tokens := 'tokens'::regclass; batches := 'mailroom_batches'::regclass; reached := pg_snapshot_xmax(pg_current_snapshot());
END
$$;

-- Returns what the ids of mails are bound to: two databases may have one key and one address for bounces. It stays as long as the place
-- does, also after pg_upgrade. Any role may read it. Inlined: each batch of mails reads it.
CREATE OR REPLACE FUNCTION mailroom_home_name() RETURNS TABLE (name text) LANGUAGE sql STABLE AS $$
    SELECT concat_ws(':', h.system_identifier, h.database, h.tokens, h.batches) FROM mailroom_home h
$$;

-- Returns why consumers on p_host, or on any host if it is null, may not serve this database; null if they may. Tables of equal oids in another cluster are told by its
-- transaction ids, which have not come as far.
CREATE OR REPLACE FUNCTION mailroom_home_problem(p_host text) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_home record;
    v_here record := mailroom_place();
BEGIN
    SELECT * INTO v_home FROM mailroom_home;
    IF v_home IS NULL THEN
        RETURN 'nobody has said that its mails are sent from here';
    ELSIF (v_home.tokens, v_home.batches) <> (v_here.tokens, v_here.batches)
       OR (v_home.system_identifier <> v_here.system_identifier AND v_home.reached > v_here.reached) THEN
        RETURN 'its tables were restored from a dump';
    ELSIF v_home.database <> v_here.database THEN
        RETURN 'it was created as a copy of another database';
    ELSIF p_host <> ALL (v_home.hosts) THEN
        RETURN format('only the hosts %s may serve it, and this is %s', array_to_string(v_home.hosts, ', '), p_host);
    END IF;
    RETURN NULL;
END
$$;

-- Raises MR009 if this session may not serve the database. The session names its host by the setting mailroom.host.
CREATE OR REPLACE FUNCTION mailroom_require_home() RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_problem text := mailroom_home_problem(coalesce(nullif(current_setting('mailroom.host', true), ''), 'an unknown host'));
BEGIN
    IF v_problem IS NOT NULL THEN
        RAISE EXCEPTION 'nothing is sent from this database: %', v_problem USING ERRCODE = 'MR009',
            HINT = 'a copy mails nobody; mailroom adopt shows what waits in it, and makes it the one that mails are sent from';
    END IF;
END
$$;

-- Makes this the place that mails are sent from, for consumers on p_hosts only, or on all if it is null. Records the operation.
CREATE OR REPLACE FUNCTION mailroom_adopt(p_hosts text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_problem text := mailroom_home_problem(NULL);
    v_before jsonb;
BEGIN
    SELECT to_jsonb(h) INTO v_before FROM mailroom_home h;
    INSERT INTO mailroom_home AS h (system_identifier, database, tokens, batches, reached, hosts)
    SELECT p.system_identifier, p.database, p.tokens, p.batches, p.reached, p_hosts FROM mailroom_place() p
    ON CONFLICT (is_only) DO UPDATE SET
        system_identifier = excluded.system_identifier, database = excluded.database, tokens = excluded.tokens,
        batches = excluded.batches, reached = excluded.reached, hosts = excluded.hosts, adopted_at = clock_timestamp(),
        adopted_by = session_user;
    IF v_problem IS NOT NULL THEN
        PERFORM mailroom_renew_owners();
    END IF;
    PERFORM mailroom_record_operation('adopt', NULL, jsonb_build_object(
        'problem', v_problem, 'before', v_before, 'hosts', to_jsonb(p_hosts)));
END
$$;
