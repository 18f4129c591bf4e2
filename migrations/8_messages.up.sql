-- Messages: any mail, which an application asks for in its own transaction. A message becomes rows of tokens, one for each
-- recipient, at once or when its time has come. From there on they are claimed, leased, deferred and recorded as every token.
-- An action says what a token of it is, how it is signed, how long a message of it is valid; a mail without a signed link is of
-- an action without a path. What comes back of a mail is a bounce, and an address that gets no more is suppressed.
--
-- Adds a label to an enum, which blocks nobody, and creates tables.
--
-- The functions are those that triggers and defaults begin with: migrations/functions makes them anew. Until then no
-- message can be inserted.

-- No statement of a migration uses the label: PostgreSQL refuses a label that is not committed. The table names actions
-- by text, so that the label and the row of an action fit into one transaction.
ALTER TYPE token_action ADD VALUE IF NOT EXISTS 'message';

CREATE TABLE mailroom_actions (
    action         text COLLATE "C" PRIMARY KEY CHECK (action ~ '^[a-z][a-z0-9_]{0,61}$'),
    number         smallint NOT NULL UNIQUE CHECK (number > 0),
    path           text COLLATE "C" UNIQUE CHECK (path ~ '^/[a-z0-9_/-]{1,62}$'),
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

-- Returns the role that acts: that of SET ROLE, or else that of the session. In a SECURITY DEFINER function current_user is
-- its owner.
CREATE FUNCTION mailroom_caller() RETURNS name LANGUAGE sql STABLE PARALLEL SAFE
RETURN coalesce(nullif(current_setting('role'), 'none')::name, session_user);

-- The roles that messages belong to. A number, at first the oid of the role, so that a role keeps its messages and keys when it is
-- renamed, dropped and made again, or restored in another cluster, where its oid is another.
CREATE TABLE mailroom_owners (
    owner    bigint PRIMARY KEY,
    role     oid UNIQUE,
    name     text COLLATE "C" NOT NULL,
    has_keys boolean NOT NULL DEFAULT false
);

COMMENT ON TABLE mailroom_owners IS 'the roles that have asked for messages: each message and each idempotency key belongs to one';
COMMENT ON COLUMN mailroom_owners.role IS 'its oid; null after a restore in another cluster that has no such role';
COMMENT ON COLUMN mailroom_owners.has_keys IS 'true if programs have had keys of it: then its messages are its own, also if it may log in';

-- How many mails a role may ask for; what it has taken of them is in the sequence mailroom_limit_<number>.
CREATE TABLE mailroom_limits (
    role   text COLLATE "C" PRIMARY KEY,
    number integer NOT NULL UNIQUE,
    mails  integer NOT NULL CHECK (mails > 0),
    period interval NOT NULL CHECK (period > '0')
);

COMMENT ON TABLE mailroom_limits IS 'how many mails each of these roles may ask for in a period, whichever way; a group: its members together';
COMMENT ON COLUMN mailroom_limits.mails IS 'a mail to three recipients is three';

-- Returns the number of the role that messages of the caller belong to.
CREATE FUNCTION mailroom_owner() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN NULL;
END
$$;

CREATE TABLE mailroom_topics (
    topic      text COLLATE "C" PRIMARY KEY CHECK (topic ~ '^[a-z][a-z0-9_-]{0,61}$'),
    title      text NOT NULL,
    titles     jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(titles) = 'object'),
    profile    text,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    retired_at timestamptz
);

COMMENT ON TABLE mailroom_topics IS 'what people can unsubscribe from, each by itself';
COMMENT ON COLUMN mailroom_topics.title IS 'as the page of preferences calls it';
COMMENT ON COLUMN mailroom_topics.titles IS 'the same by locale: {"de": "Neues im Monat"}';
COMMENT ON COLUMN mailroom_topics.profile IS 'in whose mails it is shown beside others; null: in all';
COMMENT ON COLUMN mailroom_topics.retired_at IS 'since then new messages of it are refused, and no page shows it';

-- Every column but id may be null, since object mappers insert nulls. The queue does not depend on the order of the ids.
CREATE TABLE mailroom_messages (
    id              bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    action          text DEFAULT 'message',
    account         bigint,
    recipients      text[],
    cc              text[],
    bcc             text[],
    sender          text,
    reply_to        text,
    headers         jsonb,
    template        text,
    locale          text,
    data            jsonb,
    subject         text,
    text            text,
    html            text,
    raw             bytea,
    return_path     text,
    profile         text,
    topic           text COLLATE "C",
    send_after      timestamptz,
    expires_at      timestamptz,
    idempotency_key text COLLATE "C",
    reference       text COLLATE "C",
    options         jsonb,
    fingerprint     bytea,
    created_at      timestamptz DEFAULT now(),
    enqueued_by     text DEFAULT mailroom_caller(),
    owner           bigint DEFAULT mailroom_owner(),
    replaced_at     timestamptz,
    cancelled_at    timestamptz,
    erased_at       timestamptz,
    home            integer DEFAULT mailroom_home_number()
);

COMMENT ON TABLE mailroom_messages IS 'mails that applications have asked for';
COMMENT ON COLUMN mailroom_messages.account IS
    'whose address is mailed if recipients is null; no foreign key, which would refuse TRUNCATE accounts, tokens';
COMMENT ON COLUMN mailroom_messages.recipients IS 'one mailbox an element: ada@example.org or Ada <ada@example.org>';
COMMENT ON COLUMN mailroom_messages.template IS 'with data, instead of subject, text and html; null: that of the action';
COMMENT ON COLUMN mailroom_messages.raw IS 'a whole mail as its program made it, instead of template, text, html and headers';
COMMENT ON COLUMN mailroom_messages.return_path IS 'envelope sender of a raw mail; empty: none; null: that of the configuration';
COMMENT ON COLUMN mailroom_messages.topic IS 'what its recipients can unsubscribe from; null for mail that nobody can stop so';
COMMENT ON COLUMN mailroom_messages.send_after IS 'null: at once';
COMMENT ON COLUMN mailroom_messages.expires_at IS
    'infinity: no end; null: the lifetime of the action, from send_after or the creation on';
COMMENT ON COLUMN mailroom_messages.idempotency_key IS
    'one message of an owner has it, apart from those whose place a newer one took';
COMMENT ON COLUMN mailroom_messages.reference IS 'the row of the application, as the application writes it';
COMMENT ON COLUMN mailroom_messages.options IS 'no message of a plain INSERT may have any';
COMMENT ON COLUMN mailroom_messages.fingerprint IS 'SHA-256 of what its key stands for; null without a key';
COMMENT ON COLUMN mailroom_messages.enqueued_by IS 'the role that asked for it: that of SET ROLE, or else the login';
COMMENT ON COLUMN mailroom_messages.owner IS 'the role that it belongs to, by its number in mailroom_owners';
COMMENT ON COLUMN mailroom_messages.home IS 'the number of the database where it was asked for; of another one, it gets no token here';
COMMENT ON COLUMN mailroom_messages.replaced_at IS 'when a newer message with its key took its place';
COMMENT ON COLUMN mailroom_messages.erased_at IS 'when content or addresses were removed; what was delivered stays on record';

CREATE UNIQUE INDEX mailroom_messages_key_idx ON mailroom_messages (owner, idempotency_key)
    WHERE idempotency_key IS NOT NULL AND replaced_at IS NULL;
-- The address of a mailbox, as mailroom_address() has it. An address that can be mailed is shorter than 320 characters, and
-- an index takes no text of any length.
CREATE INDEX mailroom_messages_recipient_idx ON mailroom_messages
    (lower(left(rtrim(split_part(recipients[1], '<', -1), '>'), 320)));
CREATE INDEX mailroom_messages_reference_idx ON mailroom_messages (reference) WHERE reference IS NOT NULL;
CREATE INDEX mailroom_messages_account_idx ON mailroom_messages (account) WHERE account IS NOT NULL;
-- For what was asked for lately. Rows come in this order, so that it has an entry for many pages, and an INSERT writes none.
CREATE INDEX mailroom_messages_created_idx ON mailroom_messages USING brin (created_at);

-- pglz takes most of the time of an INSERT of 100 kB.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_settings s WHERE s.name = 'default_toast_compression' AND 'lz4' = ANY (s.enumvals)) THEN
        ALTER TABLE mailroom_messages ALTER COLUMN raw SET COMPRESSION lz4;
    END IF;
END
$$;

CREATE TABLE mailroom_attachments (
    message      bigint NOT NULL,
    place        smallint NOT NULL,
    name         text NOT NULL,
    content_type text,
    content_id   text,
    content      bytea NOT NULL,
    PRIMARY KEY (message, place)
);

COMMENT ON TABLE mailroom_attachments IS 'files that go with messages';
COMMENT ON COLUMN mailroom_attachments.message IS 'whose file it is; no foreign key, whose check would make serializable transactions fail';
COMMENT ON COLUMN mailroom_attachments.place IS 'null in an INSERT: after the others of the message';
COMMENT ON COLUMN mailroom_attachments.content_type IS 'null: application/octet-stream';
COMMENT ON COLUMN mailroom_attachments.content_id IS 'by which the HTML shows it; null for a file of its own';
-- A PDF or an image gets no smaller.
ALTER TABLE mailroom_attachments ALTER COLUMN content SET STORAGE EXTERNAL;

-- Messages whose time has not come: they have no token yet, so that no claim meets them.
CREATE TABLE mailroom_schedule (
    send_after timestamptz NOT NULL,
    message    bigint NOT NULL,
    PRIMARY KEY (send_after, message)
);

COMMENT ON TABLE mailroom_schedule IS 'messages whose time has not come';

CREATE FUNCTION trg_before_message_insert() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RETURN NEW;
END
$$;

-- Without a condition: the server parses that anew in each statement, which takes longer than to call this for a row.
CREATE TRIGGER before_message_insert BEFORE INSERT ON mailroom_messages
    FOR EACH ROW EXECUTE FUNCTION trg_before_message_insert();

-- Frees the key of a message whose mail never left, before a plain INSERT meets it. mailroom_send() sets a fingerprint.
CREATE FUNCTION trg_before_keyed_message() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    RETURN NEW;
END
$$;

CREATE TRIGGER before_keyed_message BEFORE INSERT ON mailroom_messages
    FOR EACH ROW WHEN (NEW.idempotency_key IS NOT NULL AND NEW.fingerprint IS NULL)
    EXECUTE FUNCTION trg_before_keyed_message();

-- What is in a message does not change: another attempt mails the same under the same Message-ID. What removes content sets
-- erased_at.
CREATE FUNCTION trg_before_message_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RETURN NEW;
END
$$;

CREATE TRIGGER before_message_changed
    BEFORE UPDATE OF action, account, recipients, cc, bcc, sender, reply_to, headers, template, locale, data, subject, text, html, profile, topic, raw, return_path
    ON mailroom_messages
    FOR EACH ROW WHEN (NEW.erased_at IS NULL AND OLD.* IS DISTINCT FROM NEW.*)
    EXECUTE FUNCTION trg_before_message_changed();

-- A message whose send_after is changed leaves at the new time.
CREATE FUNCTION trg_before_message_rescheduled() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    RETURN NEW;
END
$$;

CREATE TRIGGER before_message_rescheduled BEFORE UPDATE OF send_after ON mailroom_messages
    FOR EACH ROW WHEN (OLD.send_after IS DISTINCT FROM NEW.send_after)
    EXECUTE FUNCTION trg_before_message_rescheduled();

CREATE FUNCTION trg_after_message_insert() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    RAISE EXCEPTION 'the functions of messages are missing' USING HINT = 'run mailroom migrate';
END
$$;

CREATE TRIGGER after_message_insert AFTER INSERT ON mailroom_messages REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION trg_after_message_insert();

CREATE FUNCTION trg_before_attachment_insert() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    RAISE EXCEPTION 'the functions of messages are missing' USING HINT = 'run mailroom migrate';
END
$$;

-- Not for those that mailroom_send() inserts: to look at their message would make serializable transactions fail. A condition is evaluated
-- with the rights of the caller, so nobody else can say the same but who may change attachments anyway.
CREATE TRIGGER before_attachment_insert BEFORE INSERT ON mailroom_attachments FOR EACH ROW
    WHEN (current_setting('mailroom.attaching', true) IS DISTINCT FROM NEW.message::text
          OR NOT has_table_privilege('mailroom_attachments'::regclass, 'UPDATE'))
    EXECUTE FUNCTION trg_before_attachment_insert();

CREATE FUNCTION trg_before_attachment_checked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the functions of messages are missing' USING HINT = 'run mailroom migrate';
END
$$;

CREATE TRIGGER before_attachment_checked BEFORE INSERT ON mailroom_attachments
    FOR EACH ROW EXECUTE FUNCTION trg_before_attachment_checked();

CREATE TRIGGER before_attachment_changed BEFORE UPDATE ON mailroom_attachments
    FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION trg_before_message_changed();

CREATE FUNCTION trg_after_attachment_insert() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    RAISE EXCEPTION 'the functions of messages are missing' USING HINT = 'run mailroom migrate';
END
$$;

CREATE TRIGGER after_attachment_insert AFTER INSERT ON mailroom_attachments REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION trg_after_attachment_insert();

CREATE FUNCTION trg_after_message_delete() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    RAISE EXCEPTION 'the functions of messages are missing' USING HINT = 'run mailroom migrate';
END
$$;

CREATE TRIGGER after_message_delete AFTER DELETE ON mailroom_messages REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION trg_after_message_delete();

CREATE TRIGGER after_message_truncate AFTER TRUNCATE ON mailroom_messages
    FOR EACH STATEMENT EXECUTE FUNCTION trg_after_message_delete();

-- What the ids are made of that applications keep: mailroom_email_id(). It stays as it is for ever, also in a copy.
CREATE TABLE mailroom_id_secret (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    secret  bytea NOT NULL CHECK (octet_length(secret) = 32)
);

COMMENT ON TABLE mailroom_id_secret IS 'what the uuids of messages are made with: another secret would make others of them. One row';

INSERT INTO mailroom_id_secret (secret)
VALUES (sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())));

-- Keys of programs that ask for mails over HTTP.
CREATE TABLE mailroom_keys (
    id         text COLLATE "C" PRIMARY KEY CHECK (octet_length(id) BETWEEN 1 AND 20),
    digest     bytea NOT NULL UNIQUE CHECK (octet_length(digest) = 32),
    role       name NOT NULL,
    name       text,
    permission text NOT NULL CHECK (permission IN ('full_access', 'sending_access')),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    revoked_at timestamptz
);

COMMENT ON TABLE mailroom_keys IS 'the keys with which programs ask for mails over HTTP, each as a role';
COMMENT ON COLUMN mailroom_keys.id IS 'how the key begins: enough to name it, and to find it in a log';
COMMENT ON COLUMN mailroom_keys.digest IS 'SHA-256 of the key, which has 256 random bits';
COMMENT ON COLUMN mailroom_keys.role IS 'as which what it asks for is stored, read and cancelled';

-- What comes back after a relay accepted a mail.
CREATE TABLE mailroom_bounces (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    digest   bytea NOT NULL,
    place    smallint NOT NULL,
    source   text NOT NULL,
    queue    text,
    token    bigint,
    address  text,
    kind     text NOT NULL CHECK (kind IN ('hard', 'soft', 'undetermined', 'complaint', 'delayed', 'auto_reply', 'delivered', 'unsubscribed',
                                                 'unread')),
    reason   text NOT NULL,
    status   text,
    code     integer,
    reply    text,
    remote   text,
    report   bytea,
    topic    text COLLATE "C",
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
COMMENT ON COLUMN mailroom_bounces.topic IS 'which a complaint or a wish for no more is about; null: all mail';
COMMENT ON COLUMN mailroom_bounces.report IS 'the begin of the report, kept for a look if it was not understood, or its mail is not known';

CREATE UNIQUE INDEX mailroom_bounces_digest_idx ON mailroom_bounces (digest, place);
CREATE INDEX mailroom_bounces_token_idx ON mailroom_bounces (token) WHERE token IS NOT NULL;
CREATE INDEX mailroom_bounces_at_idx ON mailroom_bounces (at);
-- For bounce.suppress_after, which counts the soft ones of an address.
CREATE INDEX mailroom_bounces_address_idx ON mailroom_bounces (address, id) WHERE kind IN ('soft', 'delivered');

-- The addresses that get no more.
CREATE TABLE mailroom_suppressions (
    address  text COLLATE "C" NOT NULL CHECK (address = lower(address) AND address LIKE '%_@_%'),
    topic    text COLLATE "C" NOT NULL DEFAULT '',
    kind     text NOT NULL CHECK (kind IN ('bounce', 'complaint', 'unsubscribed', 'operator')),
    reason   text NOT NULL,
    bounce   bigint,
    added_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    added_by text NOT NULL,
    PRIMARY KEY (address, topic)
);
COMMENT ON TABLE mailroom_suppressions IS 'addresses that get no mail any more, or none of a topic';
COMMENT ON COLUMN mailroom_suppressions.address IS 'its one form: mailroom_canonical()';
COMMENT ON COLUMN mailroom_suppressions.topic IS 'of which it gets none; empty: no mail at all, but for actions that are security mail';
COMMENT ON COLUMN mailroom_suppressions.bounce IS 'the row of mailroom_bounces that is the reason; no foreign key, since prune removes old ones';

-- Takes away what default privileges gave others on the tables and sequences above. What is granted afterwards stays.
DO $$
DECLARE
    r record;
BEGIN
    FOR r IN
        SELECT DISTINCT c.oid::regclass AS name, CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind,
               coalesce(quote_ident(g.rolname), 'PUBLIC') AS grantee
        FROM pg_class c, aclexplode(c.relacl) a LEFT JOIN pg_roles g ON g.oid = a.grantee
        WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relkind IN ('r', 'S')
          AND c.relname LIKE 'mailroom\_%' AND c.xmin = pg_current_xact_id()::xid AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('REVOKE ALL ON %s %s FROM %s', r.kind, r.name, r.grantee);
    END LOOP;
END
$$;

-- Whoever inserts a message looks up his number. There is nothing secret in it.
GRANT SELECT ON mailroom_owners TO PUBLIC;
