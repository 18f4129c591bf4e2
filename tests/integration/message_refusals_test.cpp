// What the database refuses as a message is what the sender would refuse, where it needs no configuration for
// that: one table for both.

#include <fmt/format.h>
#include <fstream>

#include "support/catch.hpp"
#include "support/delivery_rig.hpp"
#include "support/temporary_directory.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::message_refusals_test {
namespace {

struct Row {
  std::string what;
  std::string columns;  ///< beside recipients
  std::string values;
  std::string recipients = "'{ada@mail.example}'";
  bool is_mail = false;
};

std::string insert(const Row& row) {
  return fmt::format("INSERT INTO mailroom_messages (reference, recipients, {}) VALUES ($r${}$r$, {}, {})",
                     row.columns, row.what, row.recipients, row.values);
}

std::string long_text(int size) {
  return fmt::format("repeat('x', {})", size);
}

std::string nested(int depth) {
  return fmt::format("('{{\"d\": ' || repeat('[', {0}) || repeat(']', {0}) || '}}')::jsonb", depth - 1);
}

std::vector<Row> rows() {
  const std::string data = "template, data";
  const std::string content = "subject, text";
  const std::string hello = "'s', 't'";
  std::vector<Row> all{
      {"plain", content, hello, "'{ada@mail.example}'", true},
      {"data", data, "'x', '{\"name\": \"Ada\"}'", "'{ada@mail.example}'", true},
      {"largest data", data, "'x', jsonb_build_object('blob', repeat('y', 1048576 - 12))",
       "'{ada@mail.example}'", true},
      {"larger data", data, "'x', jsonb_build_object('blob', repeat('y', 1048576 - 11))"},
      {"deep data", data, "'x', " + nested(64), "'{ada@mail.example}'", true},
      {"deeper data", data, "'x', " + nested(65)},
      {"many brackets in a text", data, "'x', jsonb_build_object('t', repeat('[', 200))",
       "'{ada@mail.example}'", true},
      {"wide data", data, "'x', jsonb_build_object('l', array_to_json(array_fill('[]'::json, ARRAY[200])))",
       "'{ada@mail.example}'", true},
      {"many values", data, "'x', jsonb_build_object('l', array_to_json(array_fill(1, ARRAY[99998])))",
       "'{ada@mail.example}'", true},
      {"more values", data, "'x', jsonb_build_object('l', array_to_json(array_fill(1, ARRAY[99999])))"},
      {"large number", data, "'x', '{\"n\": 1e308}'", "'{ada@mail.example}'", true},
      {"larger number", data, "'x', '{\"n\": 1e309}'"},
      {"another email", data, "'x', '{\"email\": \"eve@mail.example\"}'"},
      {"the same email", data, "'x', '{\"email\": \"ada@mail.example\"}'", "'{ada@mail.example}'", true},
      {"an email that is no text", data, "'x', '{\"email\": 1}'"},
      {"another action", data, "'x', '{\"action\": \"reset\"}'"},
      {"a link without a link", data, "'x', '{\"link\": \"https://a.example\"}'", "'{ada@mail.example}'",
       true},
      {"one header", "headers, " + content, "'{\"X-A\": \"b\"}', " + hello, "'{ada@mail.example}'", true},
      {"a header twice", "headers, " + content, "'{\"X-A\": \"b\", \"x-a\": \"c\"}', " + hello},
      {"a blank header", "headers, " + content, "'{\"X-A\": \"  \"}', " + hello},
      {"a header beyond ASCII", "headers, " + content, "'{\"Thread-Topic\": \"Größe\"}', " + hello,
       "'{ada@mail.example}'", true},
      {"a long header beyond ASCII", "headers, " + content,
       "jsonb_build_object('X-A', repeat('ü', 1000)), " + hello, "'{ada@mail.example}'", true},
      {"a URL beyond ASCII", "headers, " + content,
       "'{\"List-Unsubscribe\": \"<https://app.example/ü>\"}', " + hello},
      {"an id beyond ASCII", "headers, " + content, "'{\"In-Reply-To\": \"<ü@app.example>\"}', " + hello},
      {"a header with a tab", "headers, " + content, "jsonb_build_object('X-A', E'a\\tb'), " + hello},
      {"a header that is true", "headers, " + content, "'{\"X-A\": true}', " + hello},
      {"a long word in a header", "headers, " + content,
       "jsonb_build_object('X-A', repeat('y', 901)), " + hello},
      {"a long header of words", "headers, " + content,
       "jsonb_build_object('X-A', repeat('y ', 900)), " + hello, "'{ada@mail.example}'", true},
      {"100 headers", "headers, " + content,
       "(SELECT jsonb_object_agg('X-' || i, 'y') FROM generate_series(1, 100) i), " + hello,
       "'{ada@mail.example}'", true},
      {"101 headers", "headers, " + content,
       "(SELECT jsonb_object_agg('X-' || i, 'y') FROM generate_series(1, 101) i), " + hello},
      {"a sender", "sender, " + content, "'Shop <a@brand.example>', " + hello, "'{ada@mail.example}'", true},
      {"a sender that is none", "sender, " + content, "'a@-brand.example', " + hello},
      {"an address for replies that is none", "reply_to, " + content, "'a@brand..example', " + hello},
      {"addresses for replies", "reply_to, " + content,
       "'a@brand.example, Doe, Jane <b@brand.example>, \"x@y, \\\", z\" <c@brand.example>', " + hello,
       "'{ada@mail.example}'", true},
      {"addresses for replies of which one is none", "reply_to, " + content,
       "'a@brand.example, b', " + hello},
      {"addresses for replies with a comma at the end", "reply_to, " + content,
       "'a@brand.example,', " + hello},
      {"addresses for replies with a semicolon", "reply_to, " + content,
       "'a@brand.example; b@brand.example', " + hello},
      {"a long subject", content, long_text(8192) + ", 't'", "'{ada@mail.example}'", true},
  };
  const auto address = [&](const std::string& mailbox, bool is_mail) {
    all.push_back({fmt::format("{} {}", all.size(), mailbox.substr(0, 100)), content, hello,
                   "ARRAY[$m$" + mailbox + "$m$]", is_mail});
  };
  const std::string label(63, 'a');
  for (const auto& mailbox : std::vector<std::string>{
           std::string(64, 'a') + "@mail.example", "a@" + label + ".example", "A. B. <a@mail.example>",
           "\"B, A\" <a@mail.example>", "a+b_c'd!#$%&*/=?^`{|}~@mail.example", "\"a b\"@mail.example",
           "a..b@mail.example", "a.@mail.example", ".a@mail.example", "ada@1.example", "ada@a-b.c--d.example",
           "ADA@MAIL.EXAMPLE",
           "ada@b\xc3\xbc"
           "cher.example",
           "a@" + label + "." + label + "." + label +
               ".aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.x"})
    address(mailbox, true);
  for (const auto& mailbox : std::vector<std::string>{
           std::string(65, 'a') + "@mail.example", std::string(63, 'a') + ".@mail.example",
           "a@a" + label + ".example", "a@-mail.example", "a@mail-.example", "a@mail..example",
           "a@.mail.example", "a@mail.example.", "a@mail.123", "-a@mail.example", "\"-a\"@mail.example",
           "a@ma_il.example", "a@[127.0.0.1]", "a@mail.example\xc2\xa0", "a\xe2\x80\x8b@mail.example",
           "a\xc2\xa0"
           "b@mail.example",
           "a@" + label + "." + label + "." + label + "." + label + ".x"})
    address(mailbox, false);
  return all;
}

}  // namespace

TEST_CASE("the database refuses the messages that the sender refuses, and no others") {
  DeliveryRig rig(0);
  auto& connection = *rig.connection;
  const TemporaryDirectory templates;
  for (const auto* kind : {"txt", "subject"})
    std::ofstream(templates.path() / fmt::format("x.{}", kind)) << "Hello";
  const auto table = rows();
  for (const auto& row : table) {
    INFO(row.what);
    connection.run("BEGIN");
    const auto error = refusal(connection, insert(row));
    INFO(error);
    CHECK(error.empty() == row.is_mail);
    if (!row.is_mail) CHECK(error.starts_with("23514 "));
    connection.run("ROLLBACK");
  }
  // The same past the triggers, which the owner may switch off.
  connection.run("ALTER TABLE mailroom_messages DISABLE TRIGGER USER");
  for (const auto& row : table)
    connection.run(insert(row));
  connection.run("ALTER TABLE mailroom_messages ENABLE TRIGGER USER");
  connection.run("SELECT mailroom_make_tokens(ARRAY(SELECT id FROM mailroom_messages ORDER BY id))");
  const TestRelay relay;
  TestSender sender(rig.database.conninfo(), relay.url(), {"--once"},
                    {{"MAILROOM_SEND_LINK", ""}, {"MAILROOM_SEND_TEMPLATES", templates.path().string()}});
  sender.wait();
  for (const auto& row : table) {
    INFO(row.what);
    const auto outcome = connection.run(
        "SELECT d.state, d.reply FROM mailroom_messages m JOIN tokens t ON t.message = m.id JOIN mailroom_deliveries d ON d.token = t.id "
        "WHERE m.reference = $1",
        row.what);
    REQUIRE(outcome.size() == 1);
    INFO(outcome[0][1].c_str());
    CHECK(std::string(outcome[0][0].c_str()) == (row.is_mail ? "accepted" : "rejected"));
  }
}

TEST_CASE("any name of a person makes a mailbox") {
  DeliveryRig rig(0);
  auto& connection = *rig.connection;
  const auto mailbox = [&](const std::string& name) {
    return value<std::string>(connection, "SELECT mailroom_mailbox(" + name + ", 'ada@mail.example')");
  };
  CHECK(mailbox("NULL") == "ada@mail.example");
  CHECK(mailbox("E' \t'") == "ada@mail.example");
  CHECK(mailbox("'Ada'") == "\"Ada\" <ada@mail.example>");
  CHECK(mailbox("'Dwayne \"The Rock\" J\\'") == R"("Dwayne \"The Rock\" J\\" <ada@mail.example>)");
  CHECK(mailbox("E'a\r\nBcc: x@y.example'") == "\"a Bcc: x@y.example\" <ada@mail.example>");
  connection.run(
      "SELECT mailroom_send(ARRAY[mailroom_mailbox(n, 'ada@mail.example')], subject => 's', text => 't', "
      "reply_to => mailroom_mailbox(n, 'bob@mail.example') || ', eve@mail.example') "
      "FROM unnest(ARRAY['Dwayne \"The Rock\" Johnson', 'Bob <3', 'x@y, <z@mail.example>', '\\', '\"', ';', "
      "repeat('\"', 1000), repeat('\U0001F600', 1000), E'\u0085\u2028'])  n");
  const TestRelay relay;
  TestSender sender(rig.database.conninfo(), relay.url(), {"--once"}, {{"MAILROOM_SEND_LINK", ""}});
  CHECK(sender.wait() == 0);
  CHECK(rig.count("accepted") == 9);
  for (const auto& mail : relay.taken())
    CHECK(mail.message.find("eve@mail.example") != std::string::npos);
}

TEST_CASE("a number as a header is its digits") {
  DeliveryRig rig(0);
  rig.connection->run(
      "SELECT mailroom_send('{ada@mail.example}', subject => 's', text => 't', "
      "headers => '{\"X-Order\": 17, \"X-Price\": 1.50, \"X-Large\": 123456789012345678901234567890}')");
  const TestRelay relay;
  TestSender sender(rig.database.conninfo(), relay.url(), {"--once"}, {{"MAILROOM_SEND_LINK", ""}});
  CHECK(sender.wait() == 0);
  REQUIRE(relay.taken().size() == 1);
  const auto message = relay.taken().front().message;
  for (const auto* header :
       {"\r\nX-Order: 17\r\n", "\r\nX-Price: 1.50\r\n", "\r\nX-Large: 123456789012345678901234567890\r\n"})
    CHECK(message.find(header) != std::string::npos);
}

TEST_CASE("a refused statement of many rows says which it is") {
  DeliveryRig rig(0);
  auto& connection = *rig.connection;
  const auto refused = [&](const std::string& columns, const std::string& values) {
    return refusal(
        connection,
        fmt::format("DO $do$ DECLARE d text; BEGIN INSERT INTO mailroom_messages (recipients, template{}) "
                    "SELECT ARRAY[CASE WHEN i <> 77 THEN 'u' || i || '@mail.example' END], 'news'{} "
                    "FROM generate_series(1, 1000) i; EXCEPTION WHEN check_violation THEN "
                    "GET STACKED DIAGNOSTICS d = PG_EXCEPTION_DETAIL; RAISE EXCEPTION '%', d; END $do$",
                    columns, values));
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(has(refused("", ""), "row 77 of 1000"));
  CHECK(has(refused(", reference", ", 'user:' || i"), "row 77 of 1000: reference \"user:77\""));
  CHECK(has(refused(", idempotency_key", ", 'news:' || i"), "row 77 of 1000: idempotency_key \"news:77\""));
}

TEST_CASE("a row that cannot be a mail is refused beside plain ones") {
  const DeliveryRig rig(0);
  auto& connection = *rig.connection;
  for (const auto* row :
       {"('{b@x.example}', 's', 't', 'nonsense', NULL)", "(NULL, 's', 't', 'message', NULL)",
        "('{b@x.example}', 's', NULL, 'message', NULL)", "('{b@x.example}', NULL, NULL, 'message', NULL)",
        "('{b@x.example}', NULL, NULL, 'nonsense', E'From: a@x.example\\r\\n\\r\\nx\\r\\n')",
        "('{b@x.example}', NULL, NULL, 'message', E'To: a@x.example\\r\\n\\r\\nx\\r\\n')"}) {
    INFO(row);
    const auto error = refusal(
        connection, fmt::format("INSERT INTO mailroom_messages (recipients, subject, text, action, raw) "
                                "VALUES ('{{a@x.example}}', 's', 't', 'message', NULL), {}",
                                row));
    CHECK(error.starts_with("23"));
  }
  CHECK(value<int>(connection, "SELECT count(*) FROM mailroom_messages") == 0);
}

TEST_CASE("copies without a recipient and lists as people write them are mailed") {
  DeliveryRig rig(0);
  auto& connection = *rig.connection;
  connection.run(R"(
SELECT mailroom_send(NULL, bcc => '{b@mail.example}', subject => 's', text => 't'),
  mailroom_send('{}', cc => '{c@mail.example}', subject => 's', text => 't'),
  mailroom_send(string_to_array('d@mail.example; e@mail.example', ';'), subject => 's', text => 't'),
  mailroom_send(string_to_array(E'f@mail.example;\r\n\tg@mail.example;\n', ';'), subject => 's', text => 't'))");
  connection.run("INSERT INTO mailroom_messages (bcc, subject, text) VALUES ('{h@mail.example}', 's', 't')");
  for (const auto* wrong :
       {"NULL", "'{}'", "ARRAY['']", "ARRAY['a@mail.example', '', 'b@mail.example']", "ARRAY[NULL::text]"}) {
    INFO(wrong);
    CHECK(refusal(connection, fmt::format("SELECT mailroom_send({}, subject => 's', text => 't')", wrong))
              .starts_with("23514 "));
  }
  const TestRelay relay;
  TestSender sender(rig.database.conninfo(), relay.url(), {"--once"}, {{"MAILROOM_SEND_LINK", ""}});
  CHECK(sender.wait() == 0);
  CHECK(value<std::string>(
            connection,
            "SELECT string_agg(left(address, 1) || state, ' ' ORDER BY address) FROM mailroom_deliveries") ==
        "baccepted caccepted daccepted eaccepted faccepted gaccepted haccepted");
  for (const auto& mail : relay.taken()) {
    if (mail.to == "b@mail.example" || mail.to == "h@mail.example")
      CHECK(mail.message.find("To: undisclosed-recipients:;\r\n") != std::string::npos);
    CHECK((mail.message.find("b@mail") == std::string::npos &&
           mail.message.find("h@mail") == std::string::npos));
  }
}

TEST_CASE("what is in a message does not change; its time and what is forgotten do") {
  DeliveryRig rig(0);
  auto& connection = *rig.connection;
  connection.run(
      "SELECT mailroom_send('{a@mail.example}', subject => 's', text => 't', send_after => now() + interval '1 day', "
      "attachments => '[{\"name\": \"a\", \"content\": \"MQ==\"}]')");
  for (const auto* change : {"content = 'x'", "name = 'b'", "message = 2"})
    CHECK(refusal(connection, fmt::format("UPDATE mailroom_attachments SET {}", change))
              .starts_with("55000 what is in message 1"));
  connection.run("UPDATE mailroom_attachments SET name = 'a'");
  for (const auto* change : {"recipients = '{b@mail.example}'", "subject = 'other'", "text = NULL",
                             "profile = 'x'", "data = '{}'"}) {
    INFO(change);
    CHECK(refusal(connection, fmt::format("UPDATE mailroom_messages SET {}", change))
              .starts_with("55000 what is in message"));
  }
  connection.run("UPDATE mailroom_messages SET subject = subject, send_after = now() + interval '2 days'");
  connection.run("SELECT mailroom_forget('{a@mail.example}', NULL, '{}')");
  CHECK(value<bool>(connection, "SELECT subject IS NULL FROM mailroom_messages"));
}

}  // namespace mailroom::test::message_refusals_test
