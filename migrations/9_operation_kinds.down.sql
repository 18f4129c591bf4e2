-- Deletes the operations of the newer kinds, and refuses them from now on.
--
-- Takes ACCESS EXCLUSIVE on mailroom_operations, and reads its rows.
--
-- deletes: rows mailroom_operations WHERE kind IN ('reload', 'went back', 'revoke')

DELETE FROM mailroom_operations WHERE kind IN ('reload', 'went back', 'revoke');

ALTER TABLE mailroom_operations
    DROP CONSTRAINT mailroom_operations_kind_check,
    ADD CONSTRAINT mailroom_operations_kind_check CHECK (kind IN (
        'rewind', 'replay', 'suspend', 'restore', 'prune', 'create queue', 'set queue', 'pause queue', 'resume queue',
        'drop queue', 'set budget'));
