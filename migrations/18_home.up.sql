-- Remembers where the schema lives, so that a copy of it mails nobody.
--
-- Creates a table with one row: locks no other table.

CREATE TABLE mailroom_home (
    is_only           boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    system_identifier bigint,
    database          oid NOT NULL,
    tokens            oid NOT NULL,
    batches           oid NOT NULL,
    reached           xid8 NOT NULL,
    hosts             text[] CHECK (hosts <> '{}'),
    adopted_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    adopted_by        text NOT NULL DEFAULT session_user
);
COMMENT ON TABLE mailroom_home IS 'where mails are sent from: what differs in a copy made by a dump or of a template. One row';
COMMENT ON COLUMN mailroom_home.system_identifier IS 'of the cluster; pg_upgrade changes it, and nothing else here. Null where the server does not tell it';
COMMENT ON COLUMN mailroom_home.tokens IS 'the oid of the table tokens, as batches is that of mailroom_batches: numbers, which a dump takes along';
COMMENT ON COLUMN mailroom_home.reached IS 'a transaction id that the cluster has passed';
COMMENT ON COLUMN mailroom_home.hosts IS 'the only hosts whose consumers may serve this database; null: every host';

-- Consumers of every role look at it. There is nothing secret in it.
GRANT SELECT ON mailroom_home TO PUBLIC;

-- Some services keep pg_control_system() from their users.
DO $$
DECLARE
    v_system bigint;
BEGIN
    IF has_function_privilege('pg_control_system()', 'EXECUTE') THEN
        SELECT c.system_identifier INTO v_system FROM pg_control_system() c;
    END IF;
    INSERT INTO mailroom_home (system_identifier, database, tokens, batches, reached)
    SELECT v_system, d.oid, 'tokens'::regclass, 'mailroom_batches'::regclass, pg_current_xact_id()
    FROM pg_database d WHERE d.datname = current_database();
END
$$;
