-- A queue is a row of jobs; its cursor, leases and holes are rows of tables of our own. What keeps holes few.
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
    hole_ids         bigint[] NOT NULL,
    earlier_attempts jsonb
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
COMMENT ON COLUMN mailroom_batches.earlier_attempts IS
    'the attempts that were abandoned, oldest first: attempt, collector, claimed_by, claimed_at; null if there was none';

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

-- Of many holes that wait for the same transactions makes one, by size class, so that each range is rewritten
-- only O(log n) times. Returns the holes that are left of p_holes.
CREATE FUNCTION mailroom_merge_holes(p_holes bigint[]) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    v_holes bigint[] := ARRAY(SELECT h.id FROM mailroom_holes h WHERE h.id = ANY (p_holes) ORDER BY h.id);
    v_merged bigint;
    r record;
BEGIN
    IF cardinality(v_holes) <= 40 THEN
        RETURN v_holes;
    END IF;
    FOR r IN
        SELECT array_agg(h.id) AS members, h.pending,
               (array_agg(h.horizon ORDER BY h.horizon DESC))[1] AS horizon
        FROM mailroom_holes h WHERE h.id = ANY (v_holes) AND h.pending IS NOT NULL
        GROUP BY h.pending, length(pg_column_size(h.ids)::text) HAVING count(*) >= 10
    LOOP
        INSERT INTO mailroom_holes (ids, horizon, pending)
        SELECT range_agg(g), r.horizon, r.pending FROM mailroom_holes h, unnest(h.ids) g WHERE h.id = ANY (r.members)
        RETURNING id INTO v_merged;
        DELETE FROM mailroom_holes WHERE id = ANY (r.members);
        v_holes := ARRAY(SELECT x FROM unnest(v_holes || v_merged) x WHERE x <> ALL (r.members));
    END LOOP;
    RETURN v_holes;
END
$$;

DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION mailroom_merge_holes SET search_path = %I, pg_temp', current_schema());
END
$$;
