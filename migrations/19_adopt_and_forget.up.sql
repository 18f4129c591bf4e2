-- Operations: a database that was adopted, addresses that were forgotten.
--
-- Takes ACCESS EXCLUSIVE on mailroom_operations, and reads its rows once: one for each operation, so there are few.

ALTER TABLE mailroom_operations
    DROP CONSTRAINT mailroom_operations_kind_check,
    ADD CONSTRAINT mailroom_operations_kind_check CHECK (kind IN (
        'rewind', 'replay', 'suspend', 'restore', 'prune', 'create queue', 'set queue', 'pause queue', 'resume queue',
        'drop queue', 'set budget', 'reload', 'went back', 'revoke', 'create action', 'set action', 'retire action',
        'cancel message', 'adopt', 'forget'));
