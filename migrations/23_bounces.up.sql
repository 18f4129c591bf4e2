-- What comes back after a relay accepted a mail, and the addresses that get no more.
--
-- Creates tables. Takes ACCESS EXCLUSIVE on mailroom_operations, and reads its rows once: one for each operation, so there are few.

CREATE TABLE mailroom_bounces (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    digest   bytea NOT NULL,
    place    smallint NOT NULL,
    source   text NOT NULL,
    queue    text,
    token    bigint,
    address  text,
    kind     text NOT NULL CHECK (kind IN ('hard', 'soft', 'undetermined', 'complaint', 'auto_reply', 'delivered', 'unread')),
    reason   text NOT NULL,
    status   text,
    code     integer,
    reply    text,
    remote   text,
    report   bytea,
    CHECK ((queue IS NULL) = (token IS NULL))
);
COMMENT ON TABLE mailroom_bounces IS 'what came back of mails that a relay had accepted, one row for a recipient';
COMMENT ON COLUMN mailroom_bounces.digest IS 'SHA-256 of the report that said so; with the place, each is judged once';
COMMENT ON COLUMN mailroom_bounces.place IS 'of the recipient in the report, from 1';
COMMENT ON COLUMN mailroom_bounces.source IS 'where the report was read: stdin, or a maildir';
COMMENT ON COLUMN mailroom_bounces.token IS 'whose mail it was; null if the report does not show that';
COMMENT ON COLUMN mailroom_bounces.address IS 'the address that was mailed to; of a mail that is not known, that of the report';
COMMENT ON COLUMN mailroom_bounces.kind IS 'hard: the address takes no mail, now and later; unread: a report in no form that is understood';
COMMENT ON COLUMN mailroom_bounces.reply IS 'the words of the remote server';
COMMENT ON COLUMN mailroom_bounces.report IS 'the begin of the report, kept for a look if it was not understood, or its mail is not known';

CREATE UNIQUE INDEX mailroom_bounces_digest_idx ON mailroom_bounces (digest, place);
CREATE INDEX mailroom_bounces_token_idx ON mailroom_bounces (token) WHERE token IS NOT NULL;
CREATE INDEX mailroom_bounces_at_idx ON mailroom_bounces (at);

CREATE TABLE mailroom_suppressions (
    address  text PRIMARY KEY CHECK (address = lower(address) AND address LIKE '%_@_%'),
    kind     text NOT NULL CHECK (kind IN ('bounce', 'complaint', 'operator')),
    reason   text NOT NULL,
    bounce   bigint,
    added_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    added_by text NOT NULL
);
COMMENT ON TABLE mailroom_suppressions IS 'addresses that get no mail any more, but for actions that are security mail';
COMMENT ON COLUMN mailroom_suppressions.address IS 'in lower case, its domain in ASCII';
COMMENT ON COLUMN mailroom_suppressions.bounce IS 'the row of mailroom_bounces that is the reason; no foreign key, since prune removes old ones';

ALTER TABLE mailroom_operations
    DROP CONSTRAINT mailroom_operations_kind_check,
    ADD CONSTRAINT mailroom_operations_kind_check CHECK (kind IN (
        'rewind', 'replay', 'suspend', 'restore', 'prune', 'create queue', 'set queue', 'pause queue', 'resume queue',
        'drop queue', 'set budget', 'reload', 'went back', 'revoke', 'create action', 'set action', 'retire action',
        'cancel message', 'adopt', 'forget', 'suppress', 'unsuppress'));
