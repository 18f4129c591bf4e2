-- Actions as rows: what a token of each action is, how it is signed, how long a message of it is valid. A mail without a
-- signed link is of an action without a path.
--
-- Adds a label to an enum, which blocks nobody, and creates a small table. Takes ACCESS EXCLUSIVE on mailroom_operations,
-- and reads its rows once: one for each operation, so there are few.

-- No statement of a migration uses the label: PostgreSQL refuses a label that is not committed. The table names actions
-- by text, so that the label and the row of an action fit into one transaction.
ALTER TYPE token_action ADD VALUE IF NOT EXISTS 'message';

CREATE TABLE mailroom_actions (
    action         text PRIMARY KEY CHECK (action ~ '^[a-z][a-z0-9_]{0,61}$'),
    number         smallint NOT NULL UNIQUE CHECK (number > 0),
    path           text UNIQUE CHECK (path ~ '^/[a-z0-9_/-]{1,62}$'),
    has_code       boolean NOT NULL DEFAULT false,
    account_status account_status,
    lifetime       interval CHECK (lifetime >= '1 minute'),
    template       text CHECK (template ~ '^[A-Za-z0-9_][A-Za-z0-9_-]{0,99}$'),
    security       boolean NOT NULL DEFAULT false,
    producer       name,
    retired_at     timestamptz,
    CHECK (path IS NOT NULL OR NOT has_code)
);

COMMENT ON TABLE mailroom_actions IS 'what a token of each action is; an action is a label of token_action and a row here';
COMMENT ON COLUMN mailroom_actions.number IS 'of the action in a line of CSV';
COMMENT ON COLUMN mailroom_actions.path IS
    'begins what is signed; null for a mail without a signed link, whose token has no secret';
COMMENT ON COLUMN mailroom_actions.has_code IS 'true if the signature covers a code that the user types';
COMMENT ON COLUMN mailroom_actions.account_status IS 'a token is due only while its account has this status; null: it needs none';
COMMENT ON COLUMN mailroom_actions.lifetime IS
    'of a message, from the moment at which it may be sent; null: no end. A row of tokens that is inserted directly has the default of its column';
COMMENT ON COLUMN mailroom_actions.template IS 'of a message that names none and has no content; null: such a message is refused';
COMMENT ON COLUMN mailroom_actions.security IS 'true if a suppressed address still gets it after a complaint';
COMMENT ON COLUMN mailroom_actions.producer IS
    'the role whose members may ask for messages of it: who chooses the recipient of a signed link acts for its owner; null: every producer';
COMMENT ON COLUMN mailroom_actions.retired_at IS 'since then new messages of it are refused';

INSERT INTO mailroom_actions (action, number, path, has_code, account_status, lifetime, template, security) VALUES
    ('activation', 1, '/activate', false, 'provisioned', '15 minutes', 'activation', true),
    ('password_recovery', 2, '/recover', true, 'active', '15 minutes', 'recovery', true),
    ('message', 3, NULL, false, NULL, '3 days', NULL, false);

ALTER TABLE mailroom_operations
    DROP CONSTRAINT mailroom_operations_kind_check,
    ADD CONSTRAINT mailroom_operations_kind_check CHECK (kind IN (
        'rewind', 'replay', 'suspend', 'restore', 'prune', 'create queue', 'set queue', 'pause queue', 'resume queue',
        'drop queue', 'set budget', 'reload', 'went back', 'revoke', 'create action', 'set action', 'retire action',
        'cancel message'));
