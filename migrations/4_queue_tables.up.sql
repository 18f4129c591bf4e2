-- A queue is a row of jobs; its cursor, leases and gaps are rows of new tables. A function merges gaps.
--
-- Rewrites jobs (one small row) under ACCESS EXCLUSIVE; touches nothing else that exists.

ALTER TABLE jobs ALTER COLUMN job_type TYPE text;
DROP TYPE job_type;

-- A batch: a lease while emitted_at is null, afterwards the record of what was emitted. The newest row of a queue is
-- also its state. A row is inserted once and acknowledged once, so an old snapshot that is held open leaves no long
-- chain of dead row versions.
CREATE TABLE mailroom_batches (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_type         text NOT NULL,
    ids              int8multirange NOT NULL,
    collector        integer NOT NULL,
    claimed_by       text NOT NULL DEFAULT current_setting('application_name'),
    attempts         integer NOT NULL DEFAULT 1,
    claimed_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    emitted_at       timestamptz,
    dead_at     timestamptz,
    emitted          integer NOT NULL DEFAULT 0,
    skipped_expired  integer NOT NULL DEFAULT 0,
    skipped_consumed integer NOT NULL DEFAULT 0,
    skipped_status   integer NOT NULL DEFAULT 0,
    skipped_invalid  integer NOT NULL DEFAULT 0,
    skipped_ids         int8multirange NOT NULL DEFAULT '{}',
    cursor           bigint NOT NULL,
    open_from        bigint NOT NULL,
    gap_ids         bigint[] NOT NULL,
    earlier_attempts jsonb
);

COMMENT ON TABLE mailroom_batches IS 'one row per batch of tokens; the newest row of a queue is its state';
COMMENT ON COLUMN mailroom_batches.ids IS 'the tokens of this batch: leased, or emitted';
COMMENT ON COLUMN mailroom_batches.collector IS 'backend pid of the session that holds or held the lease';
COMMENT ON COLUMN mailroom_batches.attempts IS 'how often it was leased; an acknowledgement names the attempt';
COMMENT ON COLUMN mailroom_batches.emitted_at IS 'when its line was acknowledged; null while it is leased';
COMMENT ON COLUMN mailroom_batches.skipped_ids IS 'leased tokens that were skipped when the line was written';
COMMENT ON COLUMN mailroom_batches.dead_at IS 'when it became a dead letter after too many attempts';
COMMENT ON COLUMN mailroom_batches.cursor IS 'ids at or below it are emitted, skipped, leased or in a gap';
COMMENT ON COLUMN mailroom_batches.open_from IS 'no batch below this id is still leased';
COMMENT ON COLUMN mailroom_batches.gap_ids IS 'the rows of mailroom_gaps that belong to this state';
COMMENT ON COLUMN mailroom_batches.earlier_attempts IS
    'abandoned attempts, oldest first: attempt, collector, claimed_by, claimed_at; null if there was none';

CREATE INDEX mailroom_batches_state_idx ON mailroom_batches (job_type, id);
CREATE INDEX mailroom_batches_open_idx ON mailroom_batches (job_type, id)
    WHERE emitted_at IS NULL AND dead_at IS NULL;
CREATE INDEX mailroom_batches_claimed_at_idx ON mailroom_batches USING brin (claimed_at) WITH (pages_per_range = 16);

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

-- Merges gaps of one size class that wait for the same transactions, so that each range is rewritten only O(log n)
-- times. Returns the remaining gaps of p_gaps, merged ones included.
CREATE FUNCTION mailroom_merge_gaps(p_gaps bigint[]) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    v_gaps bigint[] := ARRAY(SELECT h.id FROM mailroom_gaps h WHERE h.id = ANY (p_gaps) ORDER BY h.id);
    v_merged bigint;
    r record;
BEGIN
    IF cardinality(v_gaps) <= 40 THEN
        RETURN v_gaps;
    END IF;
    FOR r IN
        SELECT array_agg(h.id) AS members, h.pending,
               (array_agg(h.horizon ORDER BY h.horizon DESC))[1] AS horizon
        FROM mailroom_gaps h WHERE h.id = ANY (v_gaps) AND h.pending IS NOT NULL
        GROUP BY h.pending, length(pg_column_size(h.ids)::text) HAVING count(*) >= 10
    LOOP
        INSERT INTO mailroom_gaps (ids, horizon, pending)
        SELECT range_agg(g), r.horizon, r.pending FROM mailroom_gaps h, unnest(h.ids) g WHERE h.id = ANY (r.members)
        RETURNING id INTO v_merged;
        DELETE FROM mailroom_gaps WHERE id = ANY (r.members);
        v_gaps := ARRAY(SELECT x FROM unnest(v_gaps || v_merged) x WHERE x <> ALL (r.members));
    END LOOP;
    RETURN v_gaps;
END
$$;

DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION mailroom_merge_gaps SET search_path = %I, pg_temp', current_schema());
END
$$;
