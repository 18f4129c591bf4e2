-- Drops the functions that change queues. Locks nothing.

DROP FUNCTION mailroom_drop_queue(text, text);
DROP FUNCTION mailroom_pause_queue(text, boolean, text);
DROP FUNCTION mailroom_set_budget(text, jsonb, text);
DROP FUNCTION mailroom_set_queue(text, jsonb, text);
DROP FUNCTION mailroom_create_queue(text, bigint, jsonb, text, text);
DROP FUNCTION mailroom_write_queue(text, jsonb);
DROP FUNCTION mailroom_forget_budget(text);
DROP FUNCTION mailroom_write_budget(text, jsonb);
DROP FUNCTION mailroom_queue_definition(text);
