-- Forgets which key signed the tokens of each batch.
--
-- Takes ACCESS EXCLUSIVE on mailroom_batches for a moment: rewrites and reads no row.
--
-- deletes: column mailroom_batches.key

ALTER TABLE mailroom_batches DROP COLUMN key;

COMMENT ON COLUMN mailroom_batches.earlier_attempts IS
    'abandoned attempts, oldest first: attempt, collector, claimed_by, claimed_at; null if there was none';
