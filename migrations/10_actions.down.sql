-- Deletes the actions, the tokens of all but the two that existed before, and the operations on actions and messages.
-- Makes the type of actions anew, since PostgreSQL removes no label. Refuses and changes nothing while a queue takes
-- none of the two.
--
-- Rewrites tokens under ACCESS EXCLUSIVE: blocks readers and writers.
--
-- deletes: rows mailroom_actions WHERE number > 3
-- deletes: rows tokens WHERE action::text NOT IN ('activation', 'password_recovery')
-- deletes: rows mailroom_operations WHERE kind IN ('create action', 'set action', 'retire action', 'cancel message')

DO $$
DECLARE
    v_queue text;
BEGIN
    SELECT q.name INTO v_queue FROM mailroom_queues q
    WHERE q.dropped_at IS NULL AND NOT q.actions::text[] && ARRAY['activation', 'password_recovery'];
    IF FOUND THEN
        RAISE EXCEPTION 'the queue "%" takes neither activation nor password_recovery', v_queue
            USING HINT = format('drop it, or set its actions: mailroom migrate, then mailroom queue drop %s', v_queue);
    END IF;
END
$$;

DELETE FROM mailroom_operations WHERE kind IN ('create action', 'set action', 'retire action', 'cancel message');

ALTER TABLE mailroom_operations
    DROP CONSTRAINT mailroom_operations_kind_check,
    ADD CONSTRAINT mailroom_operations_kind_check CHECK (kind IN (
        'rewind', 'replay', 'suspend', 'restore', 'prune', 'create queue', 'set queue', 'pause queue', 'resume queue',
        'drop queue', 'set budget', 'reload', 'went back', 'revoke'));

DROP TABLE mailroom_actions;

DELETE FROM tokens WHERE action::text NOT IN ('activation', 'password_recovery');

UPDATE mailroom_queues
SET actions = nullif(ARRAY(SELECT a FROM unnest(actions) a WHERE a::text IN ('activation', 'password_recovery')), '{}')
WHERE actions IS NOT NULL;

ALTER TYPE token_action RENAME TO token_action_with_messages;

CREATE TYPE token_action AS ENUM ('activation', 'password_recovery');

-- A constraint on the column is written for the earlier type.
ALTER TABLE mailroom_queues DROP CONSTRAINT mailroom_queues_actions_check;
ALTER TABLE mailroom_queues ALTER COLUMN actions TYPE token_action[] USING actions::text[]::token_action[];
ALTER TABLE mailroom_queues ADD CONSTRAINT mailroom_queues_actions_check CHECK (cardinality(actions) > 0);
ALTER TABLE tokens ALTER COLUMN action TYPE token_action USING action::text::token_action;

DROP TYPE token_action_with_messages;
