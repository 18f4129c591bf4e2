-- Takes ACCESS EXCLUSIVE on mailroom_operations, and deletes what is known of bounces and suppressed addresses, which get mails again
-- then.
--
-- deletes: rows mailroom_operations WHERE kind IN ('suppress', 'unsuppress')
-- deletes: table mailroom_suppressions
-- deletes: table mailroom_bounces

DROP TABLE mailroom_suppressions;
DROP TABLE mailroom_bounces;

DELETE FROM mailroom_operations WHERE kind IN ('suppress', 'unsuppress');

ALTER TABLE mailroom_operations
    DROP CONSTRAINT mailroom_operations_kind_check,
    ADD CONSTRAINT mailroom_operations_kind_check CHECK (kind IN (
        'rewind', 'replay', 'suspend', 'restore', 'prune', 'create queue', 'set queue', 'pause queue', 'resume queue',
        'drop queue', 'set budget', 'reload', 'went back', 'revoke', 'create action', 'set action', 'retire action',
        'cancel message', 'adopt', 'forget'));
