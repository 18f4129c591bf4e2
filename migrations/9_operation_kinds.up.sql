-- Operations: reloads of consumers, records that went back, tokens that were revoked.
--
-- Takes ACCESS EXCLUSIVE on mailroom_operations, and reads its rows once: one for each operation, so there are few.

ALTER TABLE mailroom_operations
    DROP CONSTRAINT mailroom_operations_kind_check,
    ADD CONSTRAINT mailroom_operations_kind_check CHECK (kind IN (
        'rewind', 'replay', 'suspend', 'restore', 'prune', 'create queue', 'set queue', 'pause queue', 'resume queue',
        'drop queue', 'set budget', 'reload', 'went back', 'revoke'));
