-- A queue is a row of jobs; its cursor, leases and holes are rows of tables of our own.
--
-- Rewrites jobs (one small row) under ACCESS EXCLUSIVE; touches nothing else that exists.

ALTER TABLE jobs ALTER COLUMN job_type TYPE text;
DROP TYPE job_type;

-- A batch: a lease while emitted_at is null, the record of what was handed on afterwards. The newest row of a
-- queue is also its state. Rows are added and acknowledged once, so a snapshot that somebody holds open
-- makes no chain of dead versions to walk.
CREATE TABLE mailroom_batches (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_type         text NOT NULL,
    ids              int8multirange NOT NULL,
    collector        integer NOT NULL,
    claimed_by       text NOT NULL DEFAULT current_setting('application_name'),
    attempts         integer NOT NULL DEFAULT 1,
    claimed_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    emitted_at       timestamptz,
    set_aside_at     timestamptz,
    emitted          integer NOT NULL DEFAULT 0,
    skipped_expired  integer NOT NULL DEFAULT 0,
    skipped_consumed integer NOT NULL DEFAULT 0,
    skipped_status   integer NOT NULL DEFAULT 0,
    skipped_invalid  integer NOT NULL DEFAULT 0,
    left_out         int8multirange NOT NULL DEFAULT '{}',
    cursor           bigint NOT NULL,
    open_from        bigint NOT NULL,
    hole_ids         bigint[] NOT NULL
);

COMMENT ON TABLE mailroom_batches IS 'batches of tokens handed on, one row each; the newest of a queue is its state';
COMMENT ON COLUMN mailroom_batches.ids IS 'the tokens of this batch: leased, or handed on';
COMMENT ON COLUMN mailroom_batches.collector IS 'backend pid of the session that holds or held the lease';
COMMENT ON COLUMN mailroom_batches.attempts IS 'how often it was handed out; an acknowledgement names the attempt';
COMMENT ON COLUMN mailroom_batches.emitted_at IS 'when its line was acknowledged; null while it is leased';
COMMENT ON COLUMN mailroom_batches.left_out IS 'tokens that it leased, and that were not handed on when its line was written';
COMMENT ON COLUMN mailroom_batches.set_aside_at IS 'when it was given up after too many attempts';
COMMENT ON COLUMN mailroom_batches.cursor IS 'ids at or below it are emitted, passed over, leased or in a hole';
COMMENT ON COLUMN mailroom_batches.open_from IS 'no batch below this id is still leased';
COMMENT ON COLUMN mailroom_batches.hole_ids IS 'the rows of mailroom_holes that belong to this state';

CREATE INDEX mailroom_batches_state_idx ON mailroom_batches (job_type, id);
CREATE INDEX mailroom_batches_open_idx ON mailroom_batches (job_type, id)
    WHERE emitted_at IS NULL AND set_aside_at IS NULL;
CREATE INDEX mailroom_batches_claimed_at_idx ON mailroom_batches USING brin (claimed_at) WITH (pages_per_range = 16);

-- Ids at or below the cursor that no snapshot has shown yet: in progress, or rolled back for good.
CREATE TABLE mailroom_holes (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    ids     int8multirange NOT NULL,
    horizon xid8 NOT NULL,
    pending xid8[]
);

COMMENT ON COLUMN mailroom_holes.horizon IS 'a transaction that may still show one of these ids is older than this';
COMMENT ON COLUMN mailroom_holes.pending IS 'which of them still ran at the last look; null before the first';
