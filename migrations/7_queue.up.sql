-- A queue is a row of jobs; its cursor, leases, gaps, deliveries, outcomes and rates are rows of new tables, and so are the
-- record of operations and the place where the schema lives.
--
-- Rewrites jobs (one small row) under ACCESS EXCLUSIVE; touches nothing else that exists.
--
-- The functions are those that the triggers begin with: migrations/functions makes them anew.

ALTER TABLE jobs ALTER COLUMN job_type TYPE text COLLATE "C";
DROP TYPE job_type;

-- A batch: a lease while emitted_at is null, afterwards the record of what was emitted. The newest row of a queue is
-- also its state. A row is inserted once and acknowledged once, so an old snapshot that is held open leaves no long
-- chain of dead row versions.
CREATE TABLE mailroom_batches (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue            text COLLATE "C" NOT NULL,
    ids              int8multirange NOT NULL,
    collector        integer NOT NULL,
    claimed_by       text NOT NULL DEFAULT current_setting('application_name'),
    key              text DEFAULT nullif(current_setting('mailroom.key', true), ''),
    attempts         integer NOT NULL DEFAULT 1,
    claimed_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    signed_at        timestamptz,
    written_at       timestamptz,
    emitted_at       timestamptz,
    dead_at          timestamptz,
    emitted          integer NOT NULL DEFAULT 0,
    skipped_expired  integer NOT NULL DEFAULT 0,
    skipped_consumed integer NOT NULL DEFAULT 0,
    skipped_status   integer NOT NULL DEFAULT 0,
    skipped_invalid  integer NOT NULL DEFAULT 0,
    skipped_ids      int8multirange NOT NULL DEFAULT '{}',
    cursor           bigint NOT NULL,
    open_from        bigint NOT NULL,
    gap_ids          bigint[] NOT NULL,
    earlier_attempts jsonb,
    begun            text[] DEFAULT nullif(current_setting('mailroom.begun', true), '')::text[],
    ids_mask         bit varying,
    resent           int8multirange
);

COMMENT ON TABLE mailroom_batches IS 'one row per batch of tokens; the newest row of a queue is its state';
COMMENT ON COLUMN mailroom_batches.ids IS 'the tokens of this batch: leased, or emitted; with a mask, those of them that it names';
COMMENT ON COLUMN mailroom_batches.ids_mask IS
    'a bit for each id of a single range: set for the tokens of this batch; the others are of actions that the queue does not take';
COMMENT ON COLUMN mailroom_batches.resent IS
    'the tokens that an operator had emitted again from this row on: later batches mail them as new mails; null for none';
-- Never compressed nor out of line: the fetch reads it for each token.
ALTER TABLE mailroom_batches ALTER COLUMN ids_mask SET STORAGE PLAIN;
COMMENT ON COLUMN mailroom_batches.collector IS 'backend pid of the session that holds or held the lease';
-- A consumer names its key in the setting mailroom.key of its session, so that a claim costs no more.
COMMENT ON COLUMN mailroom_batches.key IS
    'fingerprint of the key that signs its tokens; null if the consumer did not name it';
COMMENT ON COLUMN mailroom_batches.attempts IS 'how often it was leased; an acknowledgement names the attempt';
COMMENT ON COLUMN mailroom_batches.signed_at IS 'when its last token was signed';
COMMENT ON COLUMN mailroom_batches.written_at IS 'when its line was written, or its last mail answered';
COMMENT ON COLUMN mailroom_batches.emitted_at IS 'when its line was acknowledged; null while it is leased';
COMMENT ON COLUMN mailroom_batches.skipped_ids IS 'leased tokens that were skipped when the line was written';
COMMENT ON COLUMN mailroom_batches.dead_at IS 'when it became a dead letter after too many attempts';
COMMENT ON COLUMN mailroom_batches.cursor IS 'ids at or below it are emitted, skipped, leased or in a gap';
COMMENT ON COLUMN mailroom_batches.open_from IS 'no batch below this id is still leased';
COMMENT ON COLUMN mailroom_batches.gap_ids IS 'the rows of mailroom_gaps that belong to this state';
COMMENT ON COLUMN mailroom_batches.earlier_attempts IS
    'abandoned attempts, oldest first: attempt, collector, claimed_by, claimed_at, key, begun; null if there was none';
COMMENT ON COLUMN mailroom_batches.begun IS
    'the sinks with which a session had begun while it was leased: what became of its tokens there is unknown if the lease ends; null: none has seen any';

CREATE INDEX mailroom_batches_state_idx ON mailroom_batches (queue, id);
CREATE INDEX mailroom_batches_resent_idx ON mailroom_batches (queue, id) WHERE resent IS NOT NULL;
-- Open batches and dead letters.
CREATE INDEX mailroom_batches_open_idx ON mailroom_batches (queue, id) WHERE emitted_at IS NULL;
CREATE INDEX mailroom_batches_claimed_at_idx ON mailroom_batches USING brin (claimed_at) WITH (pages_per_range = 16);

-- Tells applications of tokens that had ended before a claim.
CREATE FUNCTION trg_after_batch_passed() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    RETURN NULL;
END
$$;

CREATE TRIGGER after_batch_passed AFTER INSERT ON mailroom_batches
    FOR EACH ROW WHEN (NEW.skipped_expired + NEW.skipped_consumed > 0) EXECUTE FUNCTION trg_after_batch_passed();

-- Ids at or below the cursor that no snapshot has shown yet: in progress, or rolled back for good.
CREATE TABLE mailroom_gaps (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    ids     int8multirange NOT NULL,
    horizon xid8 NOT NULL,
    pending xid8[]
);

COMMENT ON COLUMN mailroom_gaps.horizon IS 'only transactions older than this may still show one of these ids';
COMMENT ON COLUMN mailroom_gaps.pending IS
    'those of them that still ran at the last check; null before the first check';

-- What became of each token that was delivered with an outcome, and when a deferred one may be tried again. `collect`
-- writes none of these rows.
CREATE TABLE mailroom_deliveries (
    queue            text COLLATE "C" NOT NULL,
    token            bigint NOT NULL,
    state            text NOT NULL
        CHECK (state IN ('accepted', 'deferred', 'rejected', 'unknown', 'expired', 'cancelled')),
    attempts         integer NOT NULL DEFAULT 0,
    unknowns         integer NOT NULL DEFAULT 0,
    not_before       timestamptz,
    batch            bigint NOT NULL,
    first_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    accepted_at      timestamptz,
    answered_at      timestamptz,
    sink             text,
    address          text,
    counted_as       text CONSTRAINT mailroom_deliveries_counted_check CHECK (counted_as <> ''),
    code             integer,
    reply            text,
    message_id       text,
    earlier_attempts jsonb,
    content_hash     bytea,
    templates        text,
    PRIMARY KEY (queue, token),
    CHECK (not_before IS NULL OR state = 'deferred')
) WITH (fillfactor = 80);

COMMENT ON TABLE mailroom_deliveries IS 'the outcome of each token that was delivered by mailroom itself';
COMMENT ON COLUMN mailroom_deliveries.attempts IS 'how often the receiver answered for this token, or may have taken it';
COMMENT ON COLUMN mailroom_deliveries.unknowns IS 'how often it may have been accepted, but no answer came';
COMMENT ON COLUMN mailroom_deliveries.not_before IS
    'when a deferred token may be tried again; null while a batch, a gap or the cursor holds it';
COMMENT ON COLUMN mailroom_deliveries.batch IS 'the batch of the last outcome';
COMMENT ON COLUMN mailroom_deliveries.accepted_at IS 'when it was last accepted; later states do not erase it';
COMMENT ON COLUMN mailroom_deliveries.answered_at IS
    'when the receiver answered the last attempt, which is before the record of it';
COMMENT ON COLUMN mailroom_deliveries.sink IS 'host and port of the receiver';
COMMENT ON COLUMN mailroom_deliveries.address IS
    'the address that the last attempt was mailed to; null if nothing was mailed, as with lines';
COMMENT ON COLUMN mailroom_deliveries.counted_as IS
    'the address, in lower case, whose mails send.per_recipient counts; null if the sender has no such limit, or nothing was accepted';
COMMENT ON COLUMN mailroom_deliveries.reply IS 'its answer, or the reason of the state';
COMMENT ON COLUMN mailroom_deliveries.message_id IS
    'the Message-ID of the last mail, without angle brackets; null if none was made, or its provider replaces it and does not tell';
COMMENT ON COLUMN mailroom_deliveries.earlier_attempts IS
    'outcomes of earlier attempts, oldest first: at, answered_at, state, batch, sink, address, code, reply, message_id, content_hash in hex, templates; null if there was none; a trigger adds them';
COMMENT ON COLUMN mailroom_deliveries.content_hash IS
    'SHA-256 of the last mail, header and body with CRLF as mailroom made it; null unless it was accepted or may have been, and with send.evidence off';
COMMENT ON COLUMN mailroom_deliveries.templates IS
    'the files that the last mail was made of: receipt.de.subject,receipt.txt; null for a mail without a template, and with send.evidence off';

CREATE INDEX mailroom_deliveries_waiting_idx ON mailroom_deliveries (queue, not_before) WHERE not_before IS NOT NULL;
CREATE INDEX mailroom_deliveries_last_at_idx ON mailroom_deliveries USING brin (last_at) WITH (pages_per_range = 16);
-- The mails that an address was sent lately. It takes no space without send.per_recipient.
CREATE INDEX mailroom_deliveries_address_idx ON mailroom_deliveries
    (queue, counted_as, coalesce(accepted_at, last_at)) WHERE counted_as IS NOT NULL;

-- For bounces of mails whose Message-ID an application has given: those of mailroom show the token, and Amazon SES gets its bounces
-- itself. It takes no space without such.
CREATE INDEX mailroom_deliveries_message_id_idx ON mailroom_deliveries (message_id) WHERE message_id NOT LIKE '%.mailroom@%' AND message_id NOT LIKE '%.amazonses.com';

-- Keeps every outcome when another follows.
CREATE FUNCTION trg_before_delivery_outcome() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RETURN NEW;
END
$$;

-- Each outcome is of another batch, or of another state.
CREATE TRIGGER before_delivery_outcome BEFORE UPDATE ON mailroom_deliveries
    FOR EACH ROW WHEN (OLD.batch <> NEW.batch OR OLD.state <> NEW.state)
    EXECUTE FUNCTION trg_before_delivery_outcome();

-- Tells applications of outcomes.
CREATE FUNCTION trg_after_delivery_outcomes() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    RETURN NULL;
END
$$;

CREATE TRIGGER after_delivery_insert AFTER INSERT ON mailroom_deliveries REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION trg_after_delivery_outcomes();
-- Each outcome is of another batch, or of another state.
CREATE TRIGGER after_delivery_update AFTER UPDATE ON mailroom_deliveries
    FOR EACH ROW WHEN (NEW.state <> 'deferred' AND (OLD.batch <> NEW.batch OR OLD.state <> NEW.state))
    EXECUTE FUNCTION trg_after_delivery_outcomes();

-- What makes a queue different from others. A queue without a row takes the tokens of every action, at priority 0, at
-- any rate. A queue that was dropped keeps its row, so that a consumer that still serves it learns that it is gone.
CREATE TABLE mailroom_queues (
    name          text COLLATE "C" PRIMARY KEY,
    actions       token_action[] CHECK (cardinality(actions) > 0),
    priority      integer NOT NULL DEFAULT 0,
    budgets       text[] NOT NULL DEFAULT '{}',
    batch_limit   text,
    batch_timeout text,
    paused_at     timestamptz,
    paused_by     text,
    pause_reason  text,
    dropped_at    timestamptz
);

COMMENT ON TABLE mailroom_queues IS 'the definitions of queues; a queue is a row of jobs';
COMMENT ON COLUMN mailroom_queues.actions IS 'the tokens that it takes; null for all';
COMMENT ON COLUMN mailroom_queues.priority IS 'of the queues of one consumer, the highest comes first';
COMMENT ON COLUMN mailroom_queues.budgets IS
    'the rates that it must keep; that of the queue alone has the name of the queue';
COMMENT ON COLUMN mailroom_queues.batch_limit IS 'for consumers that are not configured otherwise, as in mailroom.yaml';
COMMENT ON COLUMN mailroom_queues.paused_at IS 'since then it gives out no batch';

-- A rate that consumers keep together, and how much of it they have taken, as a time: the one at which the rate would
-- have allowed the last token. Updated by each claim that takes tokens within it, so it stays on one page.
CREATE TABLE mailroom_budgets (
    name        text COLLATE "C" PRIMARY KEY,
    tokens      integer NOT NULL CHECK (tokens > 0),
    period      interval NOT NULL CHECK (period > '0'),
    burst       integer NOT NULL CHECK (burst > 0),
    taken_until timestamptz NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 10);

COMMENT ON TABLE mailroom_budgets IS 'rates that all consumers of a queue, or of several queues, keep together';
COMMENT ON COLUMN mailroom_budgets.name IS 'of the queue, or of what several queues share';
COMMENT ON COLUMN mailroom_budgets.tokens IS 'so many may be taken in each period, on average';
COMMENT ON COLUMN mailroom_budgets.burst IS 'so many may be taken at once';
COMMENT ON COLUMN mailroom_budgets.taken_until IS 'the time at which the rate allows what has been taken';

-- The sinks, such as relays, that take nothing now, or refuse some mails. Consumers share what they learn, so that each
-- sink is tried by one of them at a time. A sink that works, and refuses nothing, has no row.
CREATE TABLE mailroom_sinks (
    name      text COLLATE "C" PRIMARY KEY,
    failures  integer NOT NULL,
    since     timestamptz NOT NULL,
    failed_at timestamptz NOT NULL,
    probe_at  timestamptz NOT NULL,
    reason    text NOT NULL,
    learnt    json
) WITH (fillfactor = 10);

COMMENT ON TABLE mailroom_sinks IS 'the sinks that are unavailable now, or refuse some mails';
COMMENT ON COLUMN mailroom_sinks.name IS 'host and port';
COMMENT ON COLUMN mailroom_sinks.failures IS 'failures in a row; 0: it works';
COMMENT ON COLUMN mailroom_sinks.since IS 'the first of them';
COMMENT ON COLUMN mailroom_sinks.failed_at IS 'the last of them';
COMMENT ON COLUMN mailroom_sinks.probe_at IS 'when a consumer may try it again';
COMMENT ON COLUMN mailroom_sinks.reason IS 'the last failure, in the words of the sink';
COMMENT ON COLUMN mailroom_sinks.learnt IS 'which mails it refuses, and in which row';

-- What applications are told.
CREATE TABLE mailroom_outcomes (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    queue      text COLLATE "C",
    token      bigint,
    message    bigint,
    recipient  smallint,
    state      text NOT NULL,
    address    text,
    code       integer,
    reply      text,
    topic      text COLLATE "C",
    attempts   integer NOT NULL DEFAULT 0,
    not_before timestamptz,
    CHECK (num_nulls(queue, token) IN (0, 2) AND ((token IS NULL) = (message IS NOT NULL) OR num_nulls(token, message, topic) = 2))
);
COMMENT ON TABLE mailroom_outcomes IS 'what became of tokens, until mailroom outcomes has told the application; empty unless that is wanted';
COMMENT ON COLUMN mailroom_outcomes.message IS 'which ended before it had a token; null for a token';
COMMENT ON COLUMN mailroom_outcomes.recipient IS 'of that message: the place, as in tokens';
COMMENT ON COLUMN mailroom_outcomes.topic IS 'which the address has turned off or on; null for an outcome of a mail';
COMMENT ON COLUMN mailroom_outcomes.attempts IS 'how often the application was told, and refused it';

-- What operators and applications did.
CREATE TABLE mailroom_operations (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    kind    text NOT NULL CHECK (kind IN (
        'rewind', 'replay', 'suspend', 'restore', 'prune', 'create queue', 'set queue', 'pause queue', 'resume queue',
        'drop queue', 'set budget', 'reload', 'went back', 'revoke', 'create action', 'set action', 'retire action',
        'cancel message', 'reschedule message', 'adopt', 'forget', 'suppress', 'unsuppress', 'create topic', 'set topic', 'retire topic', 'unsubscribe',
        'resubscribe', 'set limit', 'create key', 'revoke key')),
    actor   text NOT NULL,
    db_user name NOT NULL DEFAULT session_user,
    reason  text,
    queue   text,
    account bigint,
    details jsonb NOT NULL DEFAULT '{}'
);

COMMENT ON TABLE mailroom_operations IS 'operations of operators and applications on queues and accounts';
COMMENT ON COLUMN mailroom_operations.actor IS
    'the setting mailroom.actor of the transaction, or else the application_name of its session';
COMMENT ON COLUMN mailroom_operations.account IS 'no foreign key: the record outlives the account';

CREATE INDEX mailroom_operations_at_idx ON mailroom_operations (at);
CREATE INDEX mailroom_operations_account_idx ON mailroom_operations (account) WHERE account IS NOT NULL;

-- Tells applications of tokens that an operator kept from being emitted. A row that is restored is of an earlier time.
CREATE FUNCTION trg_after_operation() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    RETURN NULL;
END
$$;

CREATE TRIGGER after_operation AFTER INSERT ON mailroom_operations
    FOR EACH ROW WHEN (NEW.kind IN ('rewind', 'drop queue') AND NEW.at >= now()) EXECUTE FUNCTION trg_after_operation();

-- The result of checking one gap: the ids that are visible now, those of them that the queue takes, and the
-- transactions that may still show more.
CREATE TYPE mailroom_gap_check AS (
    id        bigint,
    found     int8multirange,
    taken     int8multirange,
    pending   xid8[],
    may_hold_more boolean
);

-- What a collector says of a batch that it has emitted. skipped_ids are the tokens that were not emitted; the counts
-- expired to invalid say why. A sink with outcomes adds one for each token that it was given: an array of objects with
-- first and last (the tokens that have this outcome), state (as in mailroom_deliveries), attempts and unknowns (how
-- many to add), wait (seconds until a deferred token may be tried again), ago (seconds since the answer), sink, code
-- and reply. signed_ago and written_ago are the microseconds since its last token was signed, and since the sink had
-- finished it; null if unknown.
CREATE TYPE mailroom_receipt AS (
    batch        bigint,
    attempt      integer,
    emitted      integer,
    expired      integer,
    consumed     integer,
    wrong_status integer,
    invalid      integer,
    skipped_ids  int8multirange,
    outcomes     jsonb,
    signed_ago   bigint,
    written_ago  bigint
);

-- Where the schema lives, so that a copy of it mails nobody.
CREATE TABLE mailroom_home (
    is_only           boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    system_identifier bigint,
    database          oid NOT NULL,
    tokens            oid NOT NULL,
    batches           oid NOT NULL,
    reached           xid8 NOT NULL,
    number            integer NOT NULL,
    hosts             text[] CHECK (hosts <> '{}'),
    adopted_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    adopted_by        text NOT NULL DEFAULT session_user,
    outcomes_since    timestamptz
);
COMMENT ON TABLE mailroom_home IS 'where mails are sent from: what differs in a copy made by a dump or of a template. One row';
COMMENT ON COLUMN mailroom_home.system_identifier IS 'of the cluster; pg_upgrade changes it, and nothing else here. Null where the server does not tell it';
COMMENT ON COLUMN mailroom_home.tokens IS 'the oid of the table tokens, as batches is that of mailroom_batches: numbers, which a dump takes along';
COMMENT ON COLUMN mailroom_home.reached IS 'a transaction id that the cluster has passed';
COMMENT ON COLUMN mailroom_home.number IS 'that of mailroom_home_number(): it differs if this row was loaded from another database';
COMMENT ON COLUMN mailroom_home.hosts IS 'the only hosts whose consumers may serve this database; null: every host';
COMMENT ON COLUMN mailroom_home.outcomes_since IS 'since then outcomes are kept for mailroom outcomes; null: they are not';

-- Takes away what default privileges gave others on the tables and sequences above, and on the history; on those of the
-- accounts too while nobody has used them. What is granted afterwards stays.
DO $$
DECLARE
    r record;
BEGIN
    FOR r IN
        SELECT DISTINCT c.oid::regclass AS name, CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind,
               coalesce(quote_ident(g.rolname), 'PUBLIC') AS grantee
        FROM pg_class c, aclexplode(c.relacl) a LEFT JOIN pg_roles g ON g.oid = a.grantee
        WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relkind IN ('r', 'S')
          AND a.grantee <> c.relowner AND CASE
              WHEN c.relname LIKE 'mailroom\_%' THEN c.xmin = pg_current_xact_id()::xid OR c.relname LIKE 'mailroom\_schema\_history%'
              ELSE c.relname IN ('accounts', 'tokens', 'jobs', 'accounts_id_seq', 'tokens_id_seq', 'schema_migrations')
                  AND NOT (SELECT is_called FROM accounts_id_seq) AND NOT (SELECT is_called FROM tokens_id_seq)
                  AND EXISTS (
                      SELECT FROM pg_default_acl d, aclexplode(d.defaclacl) x
                      WHERE d.defaclrole = c.relowner AND d.defaclnamespace IN (0, c.relnamespace) AND x.grantee = a.grantee)
              END
    LOOP
        EXECUTE format('REVOKE ALL ON %s %s FROM %s', r.kind, r.name, r.grantee);
    END LOOP;
END
$$;

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
    INSERT INTO mailroom_home (system_identifier, database, tokens, batches, reached, number)
    SELECT v_system, d.oid, 'tokens'::regclass, 'mailroom_batches'::regclass, pg_current_xact_id(), mailroom_home_number()
    FROM pg_database d WHERE d.datname = current_database();
END
$$;
