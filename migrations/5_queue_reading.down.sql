-- Removes the functions that a collector begins and a claim reads with. Locks nothing.

DROP FUNCTION mailroom_idle_cursor(text);
DROP FUNCTION mailroom_fetch(bigint, integer);
DROP FUNCTION mailroom_batch_tokens(bigint, integer);
DROP FUNCTION mailroom_look_at_holes(bigint[], integer);
DROP FUNCTION mailroom_look_at_hole(bigint, integer);
DROP TYPE mailroom_hole_look;
DROP FUNCTION mailroom_window(bigint, bigint, integer);
DROP FUNCTION mailroom_attach(text);
DROP FUNCTION mailroom_find_orphan(text, bigint, boolean, bigint, integer);
DROP FUNCTION mailroom_is_collector(integer);
DROP FUNCTION mailroom_token_state(token_action, bigint, bigint, account_status, bigint);
DROP FUNCTION mailroom_queue_state(text);
