-- Batches: the key that signed their tokens.
--
-- A consumer names its key in the setting mailroom.key of its session, so that a claim costs no more.
--
-- Takes ACCESS EXCLUSIVE on mailroom_batches for a moment: rewrites and reads no row. Rows that exist have no key.

ALTER TABLE mailroom_batches ADD COLUMN key text;
ALTER TABLE mailroom_batches ALTER COLUMN key SET DEFAULT nullif(current_setting('mailroom.key', true), '');

COMMENT ON COLUMN mailroom_batches.key IS
    'fingerprint of the key that signs its tokens; null if the consumer did not name it';
COMMENT ON COLUMN mailroom_batches.earlier_attempts IS
    'abandoned attempts, oldest first: attempt, collector, claimed_by, claimed_at, key; null if there was none';
