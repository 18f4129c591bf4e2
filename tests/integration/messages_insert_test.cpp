// Messages of every shape that an application inserts: which become tokens, which are refused, and that none
// is lost.

#include <fmt/format.h>

#include "mail/message.hpp"
#include "support/catch.hpp"
#include "support/test_queue.hpp"
#include "support/test_role.hpp"

namespace mailroom::test::messages_insert_test {
namespace {

/// `message 1:1, message 1:2`: the tokens of messages, with message and recipient.
std::string tokens(db::Connection& connection) {
  return value<std::string>(
      connection,
      "SELECT coalesce(string_agg(format('%s %s:%s', action, message, "
      "coalesce(recipient::text, '-')), ', ' ORDER BY id), '') FROM tokens WHERE message IS NOT NULL");
}

std::string insert(const std::string& columns, const std::string& values) {
  return fmt::format("INSERT INTO mailroom_messages ({}) VALUES ({})", columns, values);
}

constexpr const char* plain =
    "INSERT INTO mailroom_messages (recipients, subject, text) VALUES ('{a@x.example}', 's', 't')";

}  // namespace

TEST_CASE("a message becomes a token for each different address of to, cc and bcc") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  CHECK(
      value<int>(
          connection,
          "SELECT mailroom_send(ARRAY['Ada <ada@x.example>', 'b@x.example', 'ADA@X.example'], subject => 's', text => 't', "
          "cc => ARRAY['<b@x.example>', 'c@x.example'], bcc => ARRAY['d@x.example'])") == 1);
  CHECK(tokens(connection) == "message 1:1, message 1:2, message 1:5, message 1:6");
  CHECK(value<bool>(connection,
                    "SELECT bool_and(secret IS NULL AND code IS NULL AND account IS NULL) FROM tokens"));
  CHECK(value<int>(connection, "SELECT min(expires_at - created_at) FROM tokens") == 3 * 86400);
  const auto session = attach(rig.database);
  const auto claim = session->claim({.limit = 10, .partial = true});
  REQUIRE(claim.lease);
  std::string addresses;
  session->fetch(*claim.lease,
                 [&](const claim::TokenRow& row) { addresses += fmt::format("{} ", row.email); });
  CHECK(addresses == "ada@x.example b@x.example c@x.example d@x.example ");
}

TEST_CASE("the tokens of a statement have the order of its messages") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  const auto is_in_order = [&] {
    return value<bool>(connection,
                       "SELECT bool_and(message >= before AND (message > before OR recipient > place)) FROM ("
                       "SELECT message, recipient, lag(message, 1, 0::bigint) OVER w AS before, "
                       "lag(recipient) OVER w AS place FROM tokens WINDOW w AS (ORDER BY id)) t");
  };
  const std::string rows =
      "INSERT INTO mailroom_messages (recipients, subject, text) SELECT CASE WHEN g % 3 = 0 "
      "THEN ARRAY['a' || g || '@x.example', 'b@x.example'] ELSE ARRAY['a@x.example'] END, 'Hello', 'x' "
      "FROM generate_series(1, {}) g";
  for (const int count : {5, 400, 5}) {
    connection.run(fmt::format(fmt::runtime(rows), count));
    CHECK(is_in_order());
  }
  connection.run("ANALYZE");
  connection.run(fmt::format(fmt::runtime(rows), 1000));
  CHECK(is_in_order());
}

TEST_CASE("inserts of every shape make tokens only of rows that are there after the commit") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  connection.run(plain);
  connection.run("BEGIN");
  connection.run(plain);
  connection.run("ROLLBACK");
  connection.run("BEGIN");
  connection.run("SAVEPOINT s");
  connection.run(plain);
  connection.run("ROLLBACK TO s");
  connection.run(plain);
  connection.run("COMMIT");
  CHECK(tokens(connection) == "message 1:1, message 4:1");
  CHECK(
      connection
          .run(
              "INSERT INTO mailroom_messages (recipients, subject, text) SELECT ARRAY['u' || g || '@x.example'], 's', 't' "
              "FROM generate_series(1, 3) g RETURNING id")
          .size() == 3);
  connection.run(
      "COPY mailroom_messages (recipients, template) FROM PROGRAM 'printf \"{c@x.example}\\\\twelcome\\\\n{d@x.example}\\\\twelcome\\\\n\"'");
  CHECK(tokens(connection) ==
        "message 1:1, message 4:1, message 5:1, message 6:1, message 7:1, message 8:1, message 9:1");
  connection.run("DELETE FROM tokens");
  const std::string keyed =
      "INSERT INTO mailroom_messages (recipients, template, idempotency_key) VALUES ('{a@x.example}', 't', 'k') "
      "ON CONFLICT (owner, idempotency_key) WHERE idempotency_key IS NOT NULL AND replaced_at IS NULL ";
  for (const auto* rule : {"DO NOTHING", "DO NOTHING", "DO UPDATE SET reference = 'again'"})
    connection.run(keyed + rule);
  CHECK(value<int>(connection, "SELECT count(*) FROM tokens") == 1);
  CHECK(refusal(connection, insert("recipients, template, idempotency_key", "'{a@x.example}', 't', 'k'"))
            .starts_with("23505 "));
  CHECK(connection.run(keyed + "DO NOTHING RETURNING id").empty());
}

TEST_CASE("explicit nulls are defaults, and what mailroom sets cannot be chosen") {
  const DatabaseRig rig;
  const TestRole role(rig.database);
  rig.connection->run(fmt::format("GRANT INSERT, SELECT ON mailroom_messages TO {}", role.name()));
  db::Connection producer(role.conninfo(), "test");
  producer.run(insert(
      "action, account, recipients, cc, bcc, sender, reply_to, headers, template, locale, data, subject, text, html, "
      "profile, send_after, expires_at, idempotency_key, reference, options, fingerprint, created_at, enqueued_by, "
      "replaced_at, cancelled_at, erased_at",
      "NULL, NULL, '{a@x.example}', NULL, NULL, NULL, NULL, 'null', 't', NULL, 'null', NULL, NULL, NULL, NULL, NULL, "
      "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL"));
  producer.run(insert(
      "recipients, cc, template, options, fingerprint, created_at, enqueued_by, replaced_at, cancelled_at, erased_at",
      "'{a@x.example}', '{}', 't', '{}', 'x', '-infinity', 'postgres', now(), now(), now()"));
  CHECK(
      value<int>(
          producer,
          "SELECT count(*) FROM mailroom_messages WHERE action = 'message' AND enqueued_by = current_user "
          "AND created_at > now() - interval '1 hour' AND headers IS NULL AND data IS NULL AND options IS NULL AND "
          "fingerprint IS NULL AND coalesce(replaced_at, cancelled_at, erased_at) IS NULL") == 2);
  CHECK(tokens(*rig.connection) == "message 1:1, message 2:1");
}

TEST_CASE("no single column that mailroom sets can be chosen") {
  const DatabaseRig rig;
  const TestRole role(rig.database);
  rig.connection->run(fmt::format("GRANT INSERT ON mailroom_messages TO {}", role.name()));
  db::Connection producer(role.conninfo(), "test");
  for (const auto& [column, chosen] : std::map<std::string, std::string>{{"options", "'{}'"},
                                                                         {"fingerprint", "'x'"},
                                                                         {"created_at", "'2020-01-01'"},
                                                                         {"enqueued_by", "'postgres'"},
                                                                         {"replaced_at", "'2020-01-01'"},
                                                                         {"cancelled_at", "'2020-01-01'"},
                                                                         {"erased_at", "'2020-01-01'"}}) {
    INFO(column);
    producer.run(insert("recipients, template, " + column, "'{a@x.example}', 't', " + chosen));
    CHECK(value<int>(*rig.connection, fmt::format("SELECT count(*) FROM mailroom_messages WHERE {} = {}",
                                                  column, chosen)) == 0);
    rig.connection->run("DELETE FROM mailroom_messages");
  }
}

TEST_CASE("a message that is committed late is claimed, and none is lost or claimed twice") {
  const DatabaseRig rig;
  const auto late = rig.database.connect();
  const auto session = attach(rig.database);
  late->run("BEGIN");
  late->run(plain);
  rig.connection->run(plain);
  rig.connection->run("BEGIN");
  rig.connection->run(plain);
  rig.connection->run("ROLLBACK");
  CHECK(drain(*session) == Ids{2});
  late->run("COMMIT");
  CHECK(drain(*session) == Ids{1});
  CHECK(drain(*session).empty());
}

TEST_CASE("a message may be inserted at every isolation level") {
  const DatabaseRig rig;
  for (const auto* level : {"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"}) {
    rig.connection->run(fmt::format("BEGIN ISOLATION LEVEL {}", level));
    rig.connection->run(plain);
    rig.connection->run(
        "SELECT mailroom_send(ARRAY['a@x.example'], template => 't', send_after => now() + interval '1 hour')");
    rig.connection->run("COMMIT");
  }
  CHECK(tokens(*rig.connection) == "message 1:1, message 3:1, message 5:1");
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM mailroom_schedule") == 3);
}

TEST_CASE("a message of an account goes to its address, and is deleted with it") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  insert_accounts(connection, 2);
  connection.run("SELECT mailroom_create_action('digest', account_status => 'active')");
  connection.run(insert("account, template", "1, 't'"));
  connection.run(insert("account, action", "1, 'digest'"));
  CHECK(tokens(connection) == "message 1:-, digest 2:-");
  connection.run(insert("account, template, send_after", "1, 't', now() + interval '1 hour'"));
  connection.run("DELETE FROM accounts WHERE id = 1");
  CHECK(value<int>(connection, "SELECT count(*) FROM mailroom_messages") == 0);
  CHECK(tokens(connection).empty());
  connection.run("UPDATE mailroom_schedule SET send_after = now()");
  CHECK(value<int>(connection, "SELECT released FROM mailroom_release(10)") == 1);
  CHECK(tokens(connection).empty());
}

TEST_CASE("a message that nobody will send is found, whatever its id is") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  connection.run("ALTER TABLE mailroom_messages DISABLE TRIGGER after_message_insert");
  for (const auto* id :
       {"1", "-9223372036854775808", "4611686018427387904", "9223372036854775806", "9223372036854775807"})
    connection.run(insert("id, recipients, template", std::string(id) + ", '{a@x.example}', 't'"));
  CHECK(
      value<int>(
          connection,
          "SELECT count(*) FROM mailroom_lost_messages(now() - interval '1 day', now() + interval '1 day')") ==
      5);
}

TEST_CASE("what cannot be a mail is refused, whole") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  insert_accounts(connection, 1);
  connection.run("SELECT mailroom_create_action('magic_link', path => '/magic')");
  connection.run("SELECT mailroom_create_action('digest', account_status => 'active')");
  connection.run("SELECT mailroom_create_action('old'), mailroom_retire_action('old')");
  struct Refused {
    std::string columns;
    std::string values;
    std::string error;
  };
  const std::vector<Refused> all{
      {"subject, text", "'s', 't'", "23514 a message needs a recipient"},
      {"recipients, template", "'{}', 't'", "23514 a message needs a recipient"},
      {"cc, template", "'{}', 't'", "23514 a message needs a recipient"},
      {"account, cc, template", "1, '{a@x.example}', 't'", "23514 a message needs a recipient"},
      {"recipients, template", "array_fill('a@x.example'::text, ARRAY[101]), 't'",
       "23514 a message has 101 recipients"},
      {"recipients, template", "ARRAY['victim@x.example, me@x.example'], 't'",
       "23514 \"victim@x.example, me@x.example\" is not"},
      {"recipients, template", "ARRAY['victim@x.example, Me <me@x.example>'], 't'",
       "23514 \"victim@x.example, Me"},
      {"recipients, template", "ARRAY['A <a@x.example>, B <b@x.example>'], 't'", "23514 \"A <a@x"},
      {"recipients, template", "ARRAY['a@x.example', NULL], 't'", "23514 \"\" is not a mailbox"},
      {"recipients, template", "ARRAY[''], 't'", "23514 \"\" is not a mailbox"},
      {"recipients, template", "ARRAY['a@localhost'], 't'", "23514 \"a@localhost\" is not"},
      {"recipients, template", "ARRAY[' a@x.example'], 't'", "23514 \" a@x.example\" is not"},
      {"recipients, template", "ARRAY['a@x.example' || chr(1) || 'b@x.example'], 't'",
       "23514 a message has a control character"},
      {"recipients, template", "ARRAY[E'a@x.example\\nBcc: b@x.example'], 't'", "23514 \"a@x.example"},
      {"recipients, template", "ARRAY[E'A\\r\\n <a@x.example>'], 't'",
       "23514 a message has a control character"},
      {"recipients, bcc, template", "'{a@x.example}', '{nobody}', 't'", "23514 \"nobody\" is not"},
      {"recipients, sender, template", "'{a@x.example}', 'x', 't'", "23514 the sender \"x\" is not"},
      {"recipients, reply_to, template", "'{a@x.example}', 'b@x.example, c@x', 't'",
       "23514 the reply_to \"c@x\" is not"},
      {"recipients, subject, text", "'{a@x.example}', E's\\nBcc: x@x.example', 't'",
       "23514 a message has a control character"},
      {"recipients, template, reference", "'{a@x.example}', 't', E'a\\tb'",
       "23514 a message has a control character"},
      {"recipients, template, reference", "'{a@x.example}', 't', repeat('x', 1025)",
       "23514 a message has a mailbox, key"},
      {"recipients, template, reference", "'{a@x.example}', 't', repeat('x', 10000000)",
       "23514 a message has a mailbox, key"},
      {"recipients, template, idempotency_key", "'{a@x.example}', 't', repeat('x', 10000000)",
       "23514 a message has a mailbox, key"},
      {"recipients, subject, text", "'{a@x.example}', repeat('x', 10000000), 't'",
       "23514 a message has a mailbox, key"},
      {"recipients, template", "ARRAY[repeat('x', 10000000) || '@x.example'], 't'",
       "23514 a message has a mailbox, key"},
      {"recipients, subject, text", "'{a@x.example}', 's', repeat('x', 27000000)",
       "23514 text and html have more"},
      {"recipients, template", "'{a@x.example}', '../../etc/passwd'",
       "23514 \"../../etc/passwd\" is not a name"},
      {"recipients, template, data", "'{a@x.example}', 't', '[1]'", "23514 data is not an object"},
      {"recipients", "'{a@x.example}'", "23514 a message has no content"},
      {"recipients, data", "'{a@x.example}', '{\"a\": 1}'", "23514 a message has no content"},
      {"recipients, subject", "'{a@x.example}', 's'", "23514 a message has no text"},
      {"recipients, text", "'{a@x.example}', 't'", "23514 a message has no subject"},
      {"recipients, template, subject, text", "'{a@x.example}', 't', 's', 't'",
       "23514 a message has content of its own"},
      {"recipients, data, subject, text", "'{a@x.example}', '{}', 's', 't'",
       "23514 a message has content of its own"},
      {"recipients, action, subject, text", "'{a@x.example}', 'magic_link', 's', 't'",
       "23514 a message of the action \"magic_link\" has a link"},
      {"recipients, action, account", "'{a@x.example}', 'magic_link', 1",
       "23514 a message of the action \"magic_link\" goes to the address"},
      {"recipients, action, account", "'{a@x.example}', 'digest', 1",
       "23514 a message of the action \"digest\" goes to the address"},
      {"recipients, action", "'{a@x.example}', 'digest'",
       "23514 a message of the action \"digest\" needs an account"},
      {"account, template", "99, 't'", "23503 there is no account 99"},
      {"recipients, action", "'{a@x.example}', 'nothing'", "23503 there is no action \"nothing\""},
      {"account, action", "1, 'password_recovery'",
       "23514 a token of the action \"password_recovery\" is not made"},
      {"account, action", "1, 'activation'", "23514 a token of the action \"activation\" is not made"},
      {"recipients, action", "'{a@x.example}', 'old'", "23514 the action \"old\" is retired"},
      {"recipients, template, send_after", "'{a@x.example}', 't', 'infinity'",
       "23514 a message could never be sent"},
      {"recipients, template, send_after, expires_at", "'{a@x.example}', 't', now(), now()",
       "23514 a message could never"},
      {"recipients, template, expires_at", "'{a@x.example}', 't', now() - interval '1 hour'",
       "23514 a message could never be sent"},
      {"recipients, template, expires_at", "'{a@x.example}', 't', '-infinity'",
       "23514 a message could never be sent"},
      {"recipients, template, options", "'{a@x.example}', 't', '{\"replace\": true}'",
       "22023 a message that is inserted has no option replace"},
      {"recipients, template, headers", "'{a@x.example}', 't', '{\"Bcc\": \"b@x.example\"}'",
       "23514 the header \"Bcc\" is written"},
      {"recipients, template, headers", "'{a@x.example}', 't', '{\"content-type\": \"x\"}'",
       "23514 the header \"content-type\""},
      {"recipients, template, headers", "'{a@x.example}', 't', '{\"X-A\": \"a\\nBcc: b\"}'",
       "23514 the header \"X-A\" is not a printable text"},
      {"recipients, template, headers", "'{a@x.example}', 't', '{\"X A\": \"a\"}'",
       "23514 a header has a name"},
      {"recipients, template, headers", "'{a@x.example}', 't', '{\"X-A\": true}'",
       "23514 the header \"X-A\" is not a printable text"},
      {"recipients, template, headers", "'{a@x.example}', 't', '[]'", "23514 headers is not an object"},
  };
  for (const auto& [columns, values, error] : all) {
    const auto statement = insert(columns, values);
    INFO(statement.substr(0, 200));
    CHECK(refusal(connection, statement).substr(0, error.size()) == error);
  }
  CHECK(value<int>(connection, "SELECT count(*) FROM mailroom_messages") == 0);
  CHECK(
      refusal(
          connection,
          "INSERT INTO mailroom_messages (recipients, template) VALUES ('{a@x.example}', 't'), ('{b}', 't')") ==
      "23514 \"b\" is not a mailbox");
  CHECK(tokens(connection).empty());
}

TEST_CASE("mailboxes of every form that a mail can have are accepted") {
  const DatabaseRig rig;
  for (const auto* mailbox :
       {"ada@example.org", "Ada <ada@example.org>", "<ada@example.org>",
        "\"Countess, Ada\" <ada@example.org>", "Countess, Ada <ada@example.org>",
        "ada@example.org <ada@example.org>", "\"a \\\"b\\\" <c\" <ada@example.org>", "\"a b\"@example.org",
        "ümlaut@bücher.example", "ada+tag=1.2'3@sub.example.org", "Ada<ada@example.org>"}) {
    INFO(mailbox);
    CHECK(rig.connection->run("SELECT mailroom_is_mailbox($1)", std::string(mailbox))[0][0].as<bool>());
  }
  for (const auto* mailbox :
       {"ada@example.org", "\"x\" <ada@example.org>", "\"a <b@x.example>\" <ada@example.org>"})
    CHECK(rig.connection->run("SELECT mailroom_address($1)", std::string(mailbox))[0][0].as<std::string>() ==
          "ada@example.org");
}

TEST_CASE("attachments come with their message, and no role attaches files to the messages of others") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  connection.run(
      "SELECT mailroom_send(ARRAY['a@x.example'], template => 't', attachments => '[{\"name\": \"a.pdf\", \"content\": \"QUJD\", "
      "\"content_type\": \"application/pdf\"}, {\"name\": \"b.png\", \"content\": \"\", \"content_id\": \"logo@x\"}]')");
  CHECK(value<std::string>(
            connection,
            "SELECT string_agg(format('%s %s %s', place, name, octet_length(content)), ', ' ORDER BY place) "
            "FROM mailroom_attachments") == "1 a.pdf 3, 2 b.png 0");
  connection.run(
      "WITH m AS (INSERT INTO mailroom_messages (recipients, template) VALUES ('{a@x.example}', 't') RETURNING id) SELECT id FROM m");
  const auto attach_file = [](const std::string& message, const std::string& name,
                              const std::string& content) {
    return fmt::format("INSERT INTO mailroom_attachments (message, name, content) VALUES ({}, {}, {})",
                       message, name, content);
  };
  CHECK(refusal(connection, attach_file("2", "'late'", "'x'"))
            .starts_with("23503 this transaction has not inserted the message 2"));
  connection.run("BEGIN");
  connection.run(plain);
  connection.run(attach_file("(SELECT max(id) FROM mailroom_messages)", "'a'", "'x'"));
  connection.run(attach_file("(SELECT max(id) FROM mailroom_messages)", "'b'", "'x'"));
  connection.run("COMMIT");
  CHECK(value<int>(connection, "SELECT max(place) FROM mailroom_attachments WHERE message = 3") == 2);
  const auto sent_with = [](const std::string& files) {
    return fmt::format("SELECT mailroom_send(ARRAY['a@x.example'], template => 't', attachments => '{}')",
                       files);
  };
  CHECK(refusal(connection, sent_with("{}")).starts_with("22023 attachments is not an array"));
  CHECK(
      refusal(connection, sent_with("[{\"nme\": \"a\"}]")).starts_with("22023 an attachment has no setting"));
  CHECK(refusal(connection, sent_with("[{\"content\": \"QUJD\"}]"))
            .starts_with("23514 the name of an attachment"));
  CHECK(refusal(connection, sent_with("[{\"name\": \"a/b\", \"content\": \"QUJD\"}]"))
            .starts_with("23514 the name of an attachment"));
  CHECK(refusal(connection, sent_with("[{\"name\": \"a\"}]"))
            .starts_with("23502 the attachment \"a\" has no content"));
  CHECK(refusal(connection, sent_with("[{\"name\": \"a\", \"content\": \"QUJD\", \"content_type\": \"x\"}]"))
            .starts_with("23514 "));
  CHECK(
      refusal(
          connection,
          "SELECT mailroom_send(ARRAY['a@x.example'], template => 't', attachments => jsonb_build_array(jsonb_build_object("
          "'name', 'a', 'content', encode(convert_to(repeat('x', 26214401), 'UTF8'), 'base64'))))")
          .starts_with("23514 the attachments of a message have more than 25 MiB"));
  CHECK(value<int>(connection, "SELECT count(*) FROM mailroom_messages") == 3);
}

TEST_CASE(
    "a role that only inserts attaches to its own messages, whatever it says, and within the limits of a mail") {
  const DatabaseRig rig;
  const TestRole producer(rig.database, "producer");
  rig.connection->run("SELECT mailroom_send(ARRAY['a@x.example'], template => 't')");
  rig.connection->run("GRANT INSERT (recipients, template), SELECT (id) ON mailroom_messages TO " +
                      producer.name());
  rig.connection->run("GRANT INSERT ON mailroom_attachments TO " + producer.name());
  const auto connection = rig.database.connect();
  connection->run("SET ROLE " + producer.name());
  const auto attach = [&](const std::string& files) {
    return refusal(*connection,
                   "INSERT INTO mailroom_attachments (message, name, content_id, content) "
                   "SELECT max(id), f.name, f.content_id, f.content FROM mailroom_messages, " +
                       files + " f GROUP BY 2, 3, 4");
  };
  connection->run("BEGIN");
  CHECK(attach("(SELECT 'a' AS name, NULL::text AS content_id, ''::bytea AS content)")
            .starts_with("23503 this transaction has not inserted the message 1"));
  connection->run("ROLLBACK; BEGIN");
  connection->run("SET LOCAL mailroom.attaching = '1'");
  CHECK(attach("(SELECT 'a' AS name, NULL::text AS content_id, ''::bytea AS content)")
            .starts_with("23503 this transaction has not inserted the message 1"));
  connection->run("ROLLBACK; BEGIN");
  connection->run("INSERT INTO mailroom_messages (recipients, template) VALUES ('{a@x.example}', 't')");
  CHECK(
      attach(
          "(SELECT 'a' || n AS name, NULL AS content_id, ''::bytea AS content FROM generate_series(1, 99) n)")
          .empty());
  connection->run("SAVEPOINT s");
  CHECK(
      attach(
          "(SELECT 'a' || n AS name, NULL AS content_id, ''::bytea AS content FROM generate_series(1, 2) n)") ==
      "23514 a message has at most 100 attachments");
  connection->run("ROLLBACK TO s");
  CHECK(attach("(SELECT 'logo' AS name, 'x' AS content_id, ''::bytea AS content)").empty());
  connection->run("COMMIT; BEGIN");
  connection->run("INSERT INTO mailroom_messages (recipients, template) VALUES ('{a@x.example}', 't')");
  CHECK(attach("(SELECT 'a' AS name, 'x' AS content_id, ''::bytea AS content)").empty());
  connection->run("SAVEPOINT s");
  CHECK(attach("(SELECT 'b' AS name, 'x' AS content_id, ''::bytea AS content)") ==
        "23514 the attachment \"b\" has the content id of another");
  connection->run("ROLLBACK TO s");
  CHECK(
      attach("(SELECT 'b' AS name, NULL AS content_id, convert_to(repeat('x', 26214401), 'UTF8') AS content)")
          .starts_with("23514 the attachments of a message have more than 25 MiB"));
  connection->run("ROLLBACK");
}

TEST_CASE("the attachments of a message go with it") {
  const DatabaseRig rig;
  auto& connection = *rig.connection;
  const auto files = [&] { return value<int>(connection, "SELECT count(*) FROM mailroom_attachments"); };
  const std::string send =
      "SELECT mailroom_send(ARRAY['a@x.example'], template => 't', attachments => '[{\"name\": \"a\", \"content\": \"\"}]')";
  for (int i = 0; i < 3; ++i)
    connection.run(send);
  connection.run("DELETE FROM mailroom_messages WHERE id <= 2");
  CHECK(files() == 1);
  connection.run("TRUNCATE mailroom_messages RESTART IDENTITY");
  CHECK(files() == 0);
}

TEST_CASE("a file that cannot go with a mail is refused with its message") {
  const DatabaseRig rig;
  const std::vector<std::string> types{"application/pdf",
                                       "text/csv; charset=utf-8",
                                       "text/csv;charset=\"utf 8\"; header=present",
                                       "application/vnd.oasis.opendocument.text",
                                       "image/svg+xml",
                                       "application/x_y",
                                       "",
                                       "pdf",
                                       "a/",
                                       "/b",
                                       "a/b/c",
                                       "a b/c",
                                       "text/plain\r\nX: y",
                                       "multipart/mixed",
                                       "message/rfc822",
                                       "MESSAGE/partial",
                                       "text/plain ; a=b",
                                       " text/plain",
                                       "text/plain; charset",
                                       "text/plain; =x",
                                       "text/plain;",
                                       "text/plain; a=\"b",
                                       "text/plain; a=\"b\"c",
                                       "text/html; charset=\"x;y\"",
                                       "text/plain; a=\"\u00fc\"",
                                       "t\u00e4xt/plain",
                                       "a/" + std::string(198, 'b'),
                                       "a/" + std::string(199, 'b')};
  const std::vector<std::string> ids{"logo",        "logo@app.example",
                                     "a-b_c+d=e$f", std::string(200, 'a'),
                                     "a b",         "a%20b",
                                     ".a",          "a.",
                                     "a..b",        "@a",
                                     "a@",          "a@b@c",
                                     "a@b.",        "<a>",
                                     "a\r\nX: y",   "\u00fc",
                                     "a\tb",        std::string(201, 'a')};
  int taken = 0;
  const auto compare = [&](const mail::Attachment& file, const std::string& setting,
                           const std::string& text) {
    INFO(text);
    const auto is_refused =
        !refusal(*rig.connection,
                 "SELECT mailroom_send(ARRAY['a@x.example'], template => 't', attachments => "
                 "jsonb_build_array(jsonb_build_object('name', 'a', 'content', '', '" +
                     setting + "', '" + text + "')))")
             .empty();
    taken += is_refused ? 0 : 1;
    if (!mail::problem_of_attachments({file}).empty()) CHECK(is_refused);
  };
  for (const auto& type : types)
    compare({.name = "a", .content_type = type}, "content_type", type);
  CHECK(taken == 7);
  taken = 0;
  for (const auto& id : ids)
    compare({.name = "a", .content_id = id}, "content_id", id);
  CHECK(taken == 4);
  CHECK(refusal(*rig.connection,
                "SELECT mailroom_send(ARRAY['a@x.example'], template => 't', attachments => "
                "'[{\"name\": \"a\", \"content\": \"\", \"content_id\": \"x\"}, "
                "{\"name\": \"b\", \"content\": \"\", \"content_id\": \"x\"}]')") ==
        "23514 the attachment \"b\" has the content id of another");
}

TEST_CASE("a mail that a trigger of the application drops is an error where somebody waits for its id") {
  const TestDatabase database;
  const auto connection = database.connect();
  connection->run("SET statement_timeout = '10s'");
  connection->run(
      "CREATE FUNCTION no_mails() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$");
  connection->run(
      "CREATE TRIGGER no_mails BEFORE INSERT ON mailroom_messages FOR EACH ROW EXECUTE FUNCTION no_mails()");
  for (
      const std::string statement :
      {"SELECT mailroom_send('{a@x.example}', template => 't')",
       "SELECT mailroom_send('{a@x.example}', template => 't', idempotency_key => 'k')",
       "SELECT mailroom_submit('{a@x.example}', '{b@x.example}', ARRAY[E'From: a@x.example\\r\\n\\r\\n'::bytea])"}) {
    INFO(statement);
    CHECK(refusal(*connection, statement) == "55000 the message was not stored");
  }
  connection->run("CREATE TABLE users (id int, email text)");
  for (const auto* arguments : {"'welcome', 'email'", "'welcome', 'email', 'key:id'"}) {
    connection->run(
        fmt::format("CREATE OR REPLACE TRIGGER welcome AFTER INSERT ON users FOR EACH ROW EXECUTE FUNCTION "
                    "mailroom_send_row({})",
                    arguments));
    CHECK(refusal(*connection, "INSERT INTO users VALUES (1, 'a@x.example')").empty());
  }
  CHECK(value<int>(*connection, "SELECT count(*) FROM users") == 2);
}

}  // namespace mailroom::test::messages_insert_test
