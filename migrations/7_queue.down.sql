-- Drops the queue's tables, the record of operations and the place where the schema lives, without which a copy mails again,
-- and every queue but 'mailroom', which is all that the older type can hold. Sets jobs.last_seq of that queue to its cursor, or to before the first due token that is not emitted:
-- in a batch that is still leased, in a gap, deferred, or of an action that only another queue takes. The next program
-- thus repeats tokens and loses none.
--
-- Takes ACCESS EXCLUSIVE on jobs and on the tables it drops.
--
-- deletes: table mailroom_home
-- deletes: table mailroom_operations
-- deletes: table mailroom_outcomes
-- deletes: table mailroom_sinks
-- deletes: table mailroom_budgets
-- deletes: table mailroom_queues
-- deletes: table mailroom_deliveries
-- deletes: table mailroom_gaps
-- deletes: table mailroom_batches
-- deletes: rows jobs WHERE job_type <> 'mailroom'

LOCK TABLE jobs, mailroom_batches IN ACCESS EXCLUSIVE MODE;

INSERT INTO jobs (job_type, last_seq)
SELECT 'mailroom', CASE WHEN count(*) > 0 THEN 9223372036854775807 ELSE 0 END FROM jobs
ON CONFLICT (job_type) DO NOTHING;

WITH states AS (
    SELECT j.job_type AS queue, q.actions, s.gap_ids,
           least(coalesce(s.cursor, j.last_seq, 0),
                 (SELECT min(lower(b.ids)) - 1 FROM mailroom_batches b
                  WHERE b.queue = j.job_type AND b.emitted_at IS NULL AND NOT isempty(b.ids))) AS cursor
    FROM jobs j
    LEFT JOIN mailroom_queues q ON q.name = j.job_type
    LEFT JOIN LATERAL (
        SELECT b.cursor, b.gap_ids FROM mailroom_batches b WHERE b.queue = j.job_type ORDER BY b.id DESC LIMIT 1) s ON q.dropped_at IS NULL),
due AS (
    SELECT id, action FROM tokens
    WHERE consumed_at IS NULL AND expires_at > extract(epoch FROM clock_timestamp())),
own AS (
    SELECT s.cursor, s.actions, s.cursor < 9223372036854775807 AS is_there FROM states s WHERE s.queue = 'mailroom'),
waiting AS (
    SELECT min(d.id) - 1 AS before FROM states s JOIN due d ON d.id > s.cursor, own o
    WHERE s.queue <> 'mailroom' AND (s.actions IS NULL OR d.action = ANY (s.actions))
      AND NOT (o.is_there AND (o.actions IS NULL OR d.action = ANY (o.actions)))
    UNION ALL
    SELECT min(d.id) - 1 FROM states s JOIN mailroom_gaps h ON h.id = ANY (s.gap_ids), unnest(h.ids) g JOIN due d ON d.id <@ g
    WHERE s.actions IS NULL OR d.action = ANY (s.actions)
    UNION ALL
    SELECT min(d.token) - 1 FROM states s JOIN mailroom_deliveries d ON d.queue = s.queue AND d.not_before IS NOT NULL)
UPDATE jobs
SET last_seq = least(o.cursor, (SELECT min(w.before) FROM waiting w),
                     CASE WHEN NOT o.is_there THEN (SELECT max(s.cursor) FROM states s WHERE s.queue <> 'mailroom') END)
FROM own o WHERE jobs.job_type = 'mailroom';

DELETE FROM jobs WHERE job_type <> 'mailroom';

DROP TYPE mailroom_receipt;
DROP TYPE mailroom_gap_check;
DROP TABLE mailroom_home;
DROP TABLE mailroom_operations;
DROP TABLE mailroom_outcomes;
DROP TABLE mailroom_sinks;
DROP TABLE mailroom_budgets;
DROP TABLE mailroom_queues;
DROP TABLE mailroom_deliveries;
DROP TABLE mailroom_gaps;
DROP TABLE mailroom_batches;
DROP FUNCTION trg_after_delivery_outcomes();
DROP FUNCTION trg_before_delivery_outcome();
DROP FUNCTION trg_after_batch_passed();
DROP FUNCTION trg_after_operation();

CREATE TYPE job_type AS ENUM ('mailroom');
ALTER TABLE jobs ALTER COLUMN job_type TYPE job_type USING job_type::job_type;
