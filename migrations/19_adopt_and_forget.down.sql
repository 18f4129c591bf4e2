-- Takes ACCESS EXCLUSIVE on mailroom_operations, and deletes the records of operations that earlier versions do not know.
--
-- deletes: rows mailroom_operations WHERE kind IN ('adopt', 'forget')

DELETE FROM mailroom_operations WHERE kind IN ('adopt', 'forget');

ALTER TABLE mailroom_operations
    DROP CONSTRAINT mailroom_operations_kind_check,
    ADD CONSTRAINT mailroom_operations_kind_check CHECK (kind IN (
        'rewind', 'replay', 'suspend', 'restore', 'prune', 'create queue', 'set queue', 'pause queue', 'resume queue',
        'drop queue', 'set budget', 'reload', 'went back', 'revoke', 'create action', 'set action', 'retire action',
        'cancel message'));
