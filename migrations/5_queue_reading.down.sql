-- Drops the functions with which a collector attaches and a claim reads. Locks nothing.

DROP FUNCTION mailroom_idle_cursor(text);
DROP FUNCTION mailroom_batch_mails(bigint, integer, boolean, interval);
DROP FUNCTION mailroom_fetch(bigint, integer);
DROP FUNCTION mailroom_batch_tokens(bigint, integer);
DROP FUNCTION mailroom_batch_rows(bigint, integer);
DROP FUNCTION mailroom_check_gaps(bigint[], integer, token_action[]);
DROP FUNCTION mailroom_check_gap(bigint, integer, token_action[]);
DROP TYPE mailroom_gap_check;
DROP FUNCTION mailroom_window(bigint, bigint, integer, token_action[]);
DROP FUNCTION mailroom_attach(text);
DROP FUNCTION mailroom_find_abandoned(text, bigint, boolean, bigint, integer, bigint);
DROP FUNCTION mailroom_is_collector(integer);
DROP FUNCTION mailroom_token_state(token_action, bigint, bigint, account_status, bigint);
DROP FUNCTION mailroom_queue_state(text);
DROP FUNCTION mailroom_queue_actions(text);
DROP FUNCTION mailroom_takes(token_action[], token_action);
DROP FUNCTION mailroom_batch_ids(int8multirange, bit varying);
DROP FUNCTION mailroom_masked_ids(int8multirange, bit varying);
DROP FUNCTION mailroom_lock_class(text);
