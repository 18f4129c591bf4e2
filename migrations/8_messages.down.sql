-- Deletes the messages, their tokens, the actions, the tokens of all but the two that existed before, and what is known of
-- bounces and suppressed addresses, which get mails again then. Makes the type of actions anew, since PostgreSQL removes no
-- label. Refuses and changes nothing while a queue takes none of the two.
--
-- Rewrites tokens under ACCESS EXCLUSIVE: blocks readers and writers.
--
-- deletes: table mailroom_suppressions
-- deletes: table mailroom_bounces
-- deletes: table mailroom_messages
-- deletes: table mailroom_attachments
-- deletes: table mailroom_schedule
-- deletes: table mailroom_topics
-- deletes: table mailroom_owners
-- deletes: table mailroom_limits
-- deletes: table mailroom_actions
-- deletes: table mailroom_id_secret
-- deletes: table mailroom_keys
-- deletes: rows tokens WHERE message IS NOT NULL
-- deletes: rows tokens WHERE action::text NOT IN ('activation', 'password_recovery')

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

-- In the order in which an INSERT of a message takes them.
LOCK TABLE mailroom_messages, tokens IN ACCESS EXCLUSIVE MODE;

DROP TABLE mailroom_suppressions;
DROP TABLE mailroom_bounces;
DROP TABLE mailroom_schedule;
DROP TABLE mailroom_attachments;
DROP TABLE mailroom_messages;
DROP TABLE mailroom_topics;
DROP TABLE mailroom_owners;
DROP TABLE mailroom_limits;
DROP TABLE mailroom_actions;
DROP TABLE mailroom_id_secret;
DROP TABLE mailroom_keys;
DROP FUNCTION trg_after_message_delete();
DROP FUNCTION trg_after_attachment_insert();
DROP FUNCTION trg_before_attachment_checked();
DROP FUNCTION trg_before_attachment_insert();
DROP FUNCTION trg_after_message_insert();
DROP FUNCTION trg_before_message_rescheduled();
DROP FUNCTION trg_before_message_insert();
DROP FUNCTION trg_before_message_changed();
DROP FUNCTION trg_before_keyed_message();
DROP FUNCTION mailroom_owner();
DROP FUNCTION mailroom_caller();

DELETE FROM tokens WHERE message IS NOT NULL OR action::text NOT IN ('activation', 'password_recovery');

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
