-- Drops rewind and replay. Locks nothing.

DROP FUNCTION mailroom_replay(text, bigint[], jsonb);
DROP FUNCTION mailroom_rewind(text, bigint, bigint, jsonb);
DROP FUNCTION mailroom_append_state(text, bigint, bigint, bigint[], int8multirange);
DROP FUNCTION mailroom_cut_open_batches(text, bigint, int8multirange);
DROP FUNCTION mailroom_id_reuses();
DROP FUNCTION mailroom_batches_of(bigint[], timestamptz, timestamptz);
DROP FUNCTION mailroom_batch_reaching(text, bigint);
DROP FUNCTION mailroom_first_batch_since(timestamptz);
DROP FUNCTION mailroom_missed_tokens(text);
DROP FUNCTION mailroom_emitted_ids(text, bigint, int8range);
DROP FUNCTION mailroom_lock_queue(text);
DROP FUNCTION mailroom_record_operation(text, text, jsonb);
