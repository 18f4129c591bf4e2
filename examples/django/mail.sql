-- What the shop adds to the schema of mailroom: two kinds of links. As the owner of the tables.
SELECT mailroom.mailroom_create_action('confirm', path => '/confirm', lifetime => '1 day');
SELECT mailroom.mailroom_create_action('magic_link', path => '/magic_link', lifetime => '10 minutes');

-- An application with a role of its own needs these rights, and no others:
--   GRANT USAGE ON SCHEMA mailroom TO shop;
--   GRANT EXECUTE ON FUNCTION mailroom.mailroom_send, mailroom.mailroom_submit TO shop;
--   GRANT SELECT (secret, action, message, consumed_at, expires_at), UPDATE (consumed_at) ON mailroom.tokens TO shop;
--   GRANT SELECT (id, reference) ON mailroom.mailroom_messages TO shop;
