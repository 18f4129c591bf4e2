-- Where the schema lives. A copy of it, restored from a dump or made of a template, mails nobody until an operator adopts it; nor do
-- rows that were loaded from another database. They have its number: mailroom_home_number(), which version 1 makes, is part of the
-- schema, so that a load of all rows does not bring that of its source.

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
    ELSIF v_home.number <> mailroom_home_number() THEN
        RETURN 'its rows were loaded from another database';
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

-- Returns whether the tables are those that mails are sent from, and this session may serve them, as far as a claim looks each time:
-- adopt names other hosts while consumers are connected. Inlined.
CREATE OR REPLACE FUNCTION mailroom_tables_are_home() RETURNS TABLE (is_here boolean) LANGUAGE sql STABLE AS $$
    SELECT h.tokens = 'tokens'::regclass::oid AND h.number = mailroom_home_number()
           AND (h.hosts IS NULL OR current_setting('mailroom.host', true) = ANY (h.hosts) IS TRUE)
    FROM mailroom_home h WHERE h.is_only
$$;

-- Returns the same for rows that wait and were loaded from another database, as far as a look at some thousand shows: a claim looks at
-- each. Who may not read messages looks at tokens only,
-- and who may not read the queue at nothing.
CREATE OR REPLACE FUNCTION mailroom_loaded_problem() RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_now bigint := floor(extract(epoch FROM clock_timestamp()));
    v_tokens bigint;
    v_messages bigint := 0;
BEGIN
    IF NOT (has_table_privilege('jobs', 'SELECT') AND has_table_privilege('mailroom_batches', 'SELECT')
            AND has_table_privilege('mailroom_deliveries', 'SELECT') AND has_column_privilege('tokens', 'home', 'SELECT')) THEN
        RETURN NULL;
    END IF;
    SELECT count(*) INTO v_tokens FROM (
        SELECT t.id FROM mailroom_queue_states() q, LATERAL (
            SELECT id, home, consumed_at, expires_at FROM tokens WHERE tokens.id > q.cursor ORDER BY tokens.id LIMIT 5000) t
        WHERE t.home IS DISTINCT FROM mailroom_home_number() AND mailroom_is_live(t.consumed_at, t.expires_at, v_now)
        UNION
        SELECT t.id FROM mailroom_queue_states() q JOIN mailroom_batches b ON b.queue = q.queue AND b.id >= q.open_from,
        LATERAL unnest(mailroom_batch_ids(b.ids, b.ids_mask)) u (g), LATERAL (
            SELECT id, home, consumed_at, expires_at FROM tokens WHERE tokens.id >= lower(u.g) AND tokens.id < upper(u.g) ORDER BY tokens.id LIMIT 5000) t
        WHERE b.emitted_at IS NULL AND b.dead_at IS NULL
          AND t.home IS DISTINCT FROM mailroom_home_number() AND mailroom_is_live(t.consumed_at, t.expires_at, v_now)
        UNION
        SELECT t.id FROM (SELECT d.token FROM mailroom_queue_states() q, LATERAL (
                              SELECT token FROM mailroom_deliveries k WHERE k.queue = q.queue AND k.not_before IS NOT NULL
                              ORDER BY k.not_before LIMIT 5000) d) d, LATERAL (
            SELECT id, home, consumed_at, expires_at FROM tokens WHERE tokens.id = d.token LIMIT 1) t
        WHERE t.home IS DISTINCT FROM mailroom_home_number() AND mailroom_is_live(t.consumed_at, t.expires_at, v_now)) w;
    IF has_column_privilege('mailroom_messages', 'home', 'SELECT') AND has_table_privilege('mailroom_schedule', 'SELECT') THEN
        SELECT count(*) INTO v_messages
        FROM (SELECT s.message FROM mailroom_schedule s ORDER BY s.send_after LIMIT 1000) s, LATERAL (
            SELECT FROM mailroom_messages m WHERE m.id = s.message AND m.home IS DISTINCT FROM mailroom_home_number() LIMIT 1) m;
    END IF;
    RETURN CASE WHEN v_tokens + v_messages > 0 THEN
        format('at least %s of the tokens and messages that wait were loaded from another database', v_tokens + v_messages) END;
END
$$;

-- Raises MR009 for p_problem, if it is not null.
CREATE OR REPLACE FUNCTION mailroom_refuse_to_send(p_problem text) RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF p_problem IS NOT NULL THEN
        RAISE EXCEPTION 'nothing is sent from this database: %', p_problem USING ERRCODE = 'MR009',
            HINT = 'a copy mails nobody; mailroom adopt shows what waits in it, and makes it the one that mails are sent from';
    END IF;
END
$$;

-- Raises MR009 if this session may not serve the database. The session names its host by the setting mailroom.host.
CREATE OR REPLACE FUNCTION mailroom_require_home() RETURNS void LANGUAGE plpgsql STABLE AS $$
DECLARE
    v_problem text := mailroom_home_problem(coalesce(nullif(current_setting('mailroom.host', true), ''), 'an unknown host'));
BEGIN
    PERFORM mailroom_refuse_to_send(mailroom_home_problem(NULL));
    IF v_problem IS NOT NULL THEN
        RAISE EXCEPTION 'nothing is sent from this database by this consumer: %', v_problem USING ERRCODE = 'MR009',
            HINT = 'run it on one of these; on one of these, mailroom adopt --host names others too';
    END IF;
END
$$;

-- Raises MR009 if one of the tokens p_ids was loaded from another database, and may still be emitted.
CREATE OR REPLACE FUNCTION mailroom_require_own(p_ids int8multirange) RETURNS void LANGUAGE plpgsql STABLE AS $$
BEGIN
    PERFORM mailroom_refuse_to_send('tokens that wait were loaded from another database')
    FROM unnest(p_ids) u (g), LATERAL (
        SELECT FROM tokens t
        WHERE t.id >= lower(u.g) AND t.id < upper(u.g) AND t.home IS DISTINCT FROM mailroom_home_number()
          AND mailroom_is_live(t.consumed_at, t.expires_at, floor(extract(epoch FROM clock_timestamp()))::bigint)
        ORDER BY t.id LIMIT 1) t;
END
$$;

-- Makes this the place that mails are sent from, for consumers on p_hosts only, or on all if it is null. A copy gets a number of its
-- own, and what waits gets that number; so do tokens that may still be emitted again. Records the operation.
CREATE OR REPLACE FUNCTION mailroom_adopt(p_hosts text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_copy text := mailroom_home_problem(NULL);
    v_problem text := coalesce(v_copy, mailroom_loaded_problem());
    v_before jsonb;
BEGIN
    SELECT to_jsonb(h) INTO v_before FROM mailroom_home h;
    IF v_copy IS NOT NULL THEN
        EXECUTE format('CREATE OR REPLACE FUNCTION mailroom_home_number() RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN %s',
                       ('x' || right(gen_random_uuid()::text, 7))::bit(28)::integer);
    END IF;
    IF v_problem IS NOT NULL THEN
        UPDATE tokens t SET home = mailroom_home_number()
        WHERE t.home IS DISTINCT FROM mailroom_home_number()
          AND mailroom_is_live(t.consumed_at, t.expires_at, floor(extract(epoch FROM clock_timestamp()))::bigint);
        UPDATE mailroom_messages m SET home = mailroom_home_number() FROM mailroom_schedule s
        WHERE m.id = s.message AND m.home IS DISTINCT FROM mailroom_home_number();
    END IF;
    INSERT INTO mailroom_home AS h (system_identifier, database, tokens, batches, reached, number, hosts)
    SELECT p.system_identifier, p.database, p.tokens, p.batches, p.reached, mailroom_home_number(), p_hosts FROM mailroom_place() p
    ON CONFLICT (is_only) DO UPDATE SET
        system_identifier = excluded.system_identifier, database = excluded.database, tokens = excluded.tokens,
        batches = excluded.batches, reached = excluded.reached, number = excluded.number, hosts = excluded.hosts, adopted_at = clock_timestamp(),
        adopted_by = session_user;
    IF v_problem IS NOT NULL THEN
        PERFORM mailroom_renew_owners();
    END IF;
    PERFORM mailroom_record_operation('adopt', NULL, jsonb_build_object(
        'problem', v_problem, 'before', v_before, 'hosts', to_jsonb(p_hosts)));
END
$$;
