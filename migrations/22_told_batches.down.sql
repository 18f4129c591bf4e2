-- Takes ACCESS EXCLUSIVE on mailroom_batches for a moment, and reads no row.

DROP TRIGGER after_batch_expired ON mailroom_batches;
DROP FUNCTION trg_after_batch_expired();
