-- Drops the queue's tables with their records. Sets jobs.last_seq to the cursor, or to before the first batch that is
-- still leased, so that the next program repeats tokens and loses none. Fails while jobs has queues other than
-- 'mailroom', which the older type cannot hold.
--
-- Takes ACCESS EXCLUSIVE on jobs and on the tables it drops.
--
-- deletes: table mailroom_sinks
-- deletes: table mailroom_budgets
-- deletes: table mailroom_queues
-- deletes: table mailroom_deliveries
-- deletes: table mailroom_gaps
-- deletes: table mailroom_batches

LOCK TABLE mailroom_batches IN ACCESS EXCLUSIVE MODE;

UPDATE jobs j
SET last_seq = least(
    (SELECT b.cursor FROM mailroom_batches b WHERE b.job_type = j.job_type ORDER BY b.id DESC LIMIT 1),
    (SELECT min(lower(b.ids)) - 1 FROM mailroom_batches b
     WHERE b.job_type = j.job_type AND b.emitted_at IS NULL AND NOT isempty(b.ids)))
WHERE EXISTS (SELECT FROM mailroom_batches b WHERE b.job_type = j.job_type);

DROP FUNCTION mailroom_merge_gaps(bigint[]);
DROP TABLE mailroom_sinks;
DROP TABLE mailroom_budgets;
DROP TABLE mailroom_queues;
DROP TABLE mailroom_deliveries;
DROP TABLE mailroom_gaps;
DROP TABLE mailroom_batches;

CREATE TYPE job_type AS ENUM ('mailroom');
ALTER TABLE jobs ALTER COLUMN job_type TYPE job_type USING job_type::job_type;
