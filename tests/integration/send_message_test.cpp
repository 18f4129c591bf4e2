// `mailroom send` with messages: a real database, a relay that keeps what it takes, and GMime as its reader.

#include <fmt/format.h>
#include <map>
#include <set>

#include "support/catch.hpp"
#include "support/delivery_rig.hpp"
#include "support/gmime_reader.hpp"
#include "support/temporary_directory.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::send_message_test {
namespace {

/// Sends once what is due, and expects the exit code.
void send_once(DeliveryRig& rig, const TestRelay& relay, const std::vector<std::string>& options = {},
               const std::map<std::string, std::string>& environment = {}, int code = 0) {
  std::vector<std::string> all{"--once"};
  all.insert(all.end(), options.begin(), options.end());
  TestSender sender(rig.database.conninfo(), relay.url(), all, environment);
  CHECK(sender.wait() == code);
  INFO(sender.log());
}

std::string outcomes(db::Connection& connection) {
  return value<std::string>(
      connection,
      "SELECT coalesce(string_agg(state || ' ' || CASE WHEN state = 'accepted' THEN address ELSE reply END, "
      "'; ' ORDER BY token), '') FROM mailroom_deliveries");
}

std::set<std::string> recipients_of(const TestRelay& relay) {
  std::set<std::string> all;
  for (const auto& mail : relay.taken())
    all.insert(mail.to);
  return all;
}

std::set<std::string> messages_of(const TestRelay& relay) {
  std::set<std::string> all;
  for (const auto& mail : relay.taken())
    all.insert(mail.message);
  return all;
}

std::string header_of(const ReadMessage& read, const std::string& name) {
  for (const auto& [other, value] : read.headers)
    if (other == name) return value;
  return {};
}

const std::map<std::string, std::string> no_link{{"MAILROOM_SEND_LINK", ""}};

/// What `send` writes to stderr and stdout, which ends with this exit code.
std::string said_by(DeliveryRig& rig, const TestRelay& relay, const std::vector<std::string>& options,
                    int code) {
  TestSender sender(rig.database.conninfo(), relay.url(), options, no_link);
  CHECK(sender.wait() == code);
  return sender.log() + sender.output();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("each recipient of a message gets the same bytes, with files, and bcc stands in no header") {
  DeliveryRig rig(0);
  rig.connection->run(
      "SELECT mailroom_send(ARRAY['Ada <ada@mail.example>', 'bob@mail.example'], cc => ARRAY['c@mail.example'], "
      "bcc => ARRAY['secret@mail.example'], subject => 'Grüße', text => 'Hello', html => '<img src=\"cid:logo\">', "
      "sender => 'Shop <shop@brand.example>', reply_to => 'help@brand.example', "
      "headers => '{\"List-Unsubscribe\": \"<https://app.example/u>\", "
      "\"List-Unsubscribe-Post\": \"List-Unsubscribe=One-Click\"}', "
      "attachments => '[{\"name\": \"Rechnung ü.pdf\", \"content_type\": \"application/pdf\", \"content\": \"JVBERgD/\"}, "
      "{\"name\": \"logo.png\", \"content_type\": \"image/png\", \"content_id\": \"logo\", \"content\": \"UE5H\"}]')");
  // At the first attempt one copy is deferred.
  TestRelay relay({.play = [](const RelayMoment& moment) {
    return moment.step == RelayStep::end && moment.recipient.find("bob@") != std::string::npos
               ? RelayAnswer::reply("451 4.3.0 try again")
               : RelayAnswer{};
  }});
  send_once(rig, relay);
  CHECK(recipients_of(relay) ==
        std::set<std::string>{"ada@mail.example", "c@mail.example", "secret@mail.example"});
  rig.due_now();
  TestRelay willing;
  send_once(rig, willing);
  CHECK(recipients_of(willing) == std::set<std::string>{"bob@mail.example"});
  auto messages = messages_of(relay);
  messages.merge(messages_of(willing));
  REQUIRE(messages.size() == 1);
  CHECK(relay.taken().front().from == "<shop@brand.example>");

  const auto& message = *messages.begin();
  CHECK(message.find("secret@") == std::string::npos);
  const auto read = read_by_gmime(message);
  CHECK(read.shape == "mixed(alternative(text/plain related(text/html image/png)) application/pdf)");
  CHECK(read.subject == "Grüße");
  CHECK(header_of(read, "From") == "Shop <shop@brand.example>");
  CHECK(header_of(read, "Reply-To") == "help@brand.example");
  CHECK(header_of(read, "List-Unsubscribe-Post") == "List-Unsubscribe=One-Click");
  CHECK(header_of(read, "Message-ID").find(".m1.mailroom@brand.example>") != std::string::npos);
  CHECK(read.to.size() == 2);
  CHECK(read.cc.size() == 1);
  CHECK(read.parts.back().name == "Rechnung ü.pdf");
  CHECK(read.parts.back().content == std::string("%PDF\0\xff", 6));
  CHECK(read.parts[2].content_id == "logo");
  CHECK(rig.count("accepted") == 4);
}

TEST_CASE("a template shows the data of a message, and what it lacks is an outcome") {
  DeliveryRig rig(0);
  const TemporaryDirectory templates;
  templates.write("receipt.subject", "Order {{order}}");
  templates.write("receipt.de.subject", "Bestellung {{order}}");
  templates.write("receipt.txt", "{{#items}}\n- {{name}}: {{price}}\n{{/items}}\n{{total}}\n");
  rig.connection->run(
      "SELECT mailroom_send(ARRAY['a@mail.example'], 'receipt', '{\"order\": 17, \"total\": 12.50, "
      "\"items\": [{\"name\": \"tea\", \"price\": 4.00}]}', locale => 'de_AT'), "
      "mailroom_send(ARRAY['b@mail.example'], 'receipt', '{\"order\": 18, \"items\": []}'), "
      "mailroom_send(ARRAY['c@mail.example'], 'receit', '{}')");
  TestRelay relay;
  send_once(rig, relay, {"--templates", templates.path().string()});
  CHECK(outcomes(*rig.connection) ==
        "accepted a@mail.example; "
        "rejected receipt.txt:4: neither the data nor mailroom has {{total}}; "
        "rejected there is no template receit; did you mean receipt?");
  REQUIRE(relay.taken().size() == 1);
  const auto read = read_by_gmime(relay.taken().front().message);
  CHECK(read.subject == "Bestellung 17");
  CHECK(with_lf(read.parts.front().content) == "- tea: 4.00\n12.50\n");
}

TEST_CASE("mails of accounts are in the locale that their application gives them") {
  DeliveryRig rig(0);
  auto& connection = *rig.connection;
  const TemporaryDirectory templates;
  for (const auto* name : {"activation", "news"}) {
    for (const std::string locale : {"", ".de"}) {
      templates.write(fmt::format("{}{}.subject", name, locale), fmt::format("{}{}", name, locale));
      templates.write(fmt::format("{}{}.txt", name, locale), "{{action}}");
    }
  }
  const auto subjects = [&](const std::string& sql) {
    connection.run(sql);
    TestRelay relay;
    send_once(rig, relay, {"--templates", templates.path().string()});
    std::map<std::string, std::string> all;
    for (const auto& mail : relay.taken())
      all[mail.to] = read_by_gmime(mail.message).subject;
    std::string text;
    for (const auto& [to, subject] : all)
      text += to.substr(0, 1) + ":" + subject + " ";
    return text;
  };
  CHECK(subjects("INSERT INTO accounts (email, login) VALUES ('a@mail.example', 'a')") == "a:activation ");
  connection.run("ALTER TABLE accounts ADD COLUMN locale text");
  CHECK(subjects("INSERT INTO accounts (email, login, locale) VALUES ('b@mail.example', 'b', 'de_AT'), "
                 "('c@mail.example', 'c', NULL), ('d@mail.example', 'd', 'fr')") ==
        "b:activation.de c:activation d:activation ");
  const std::string account =
      "SELECT mailroom_send(NULL, 'news', account => (SELECT id FROM accounts WHERE login = 'b')";
  CHECK(subjects(account + ")") == "b:news.de ");
  CHECK(subjects(account + ", locale => 'fr')") == "b:news ");
  CHECK(subjects("SELECT mailroom_send('{e@mail.example}', 'news', account => (SELECT id FROM accounts WHERE "
                 "login = 'b'))") == "e:news ");
}

TEST_CASE("a message of an action with a path has a signed link of each recipient's own") {
  DeliveryRig rig(0);
  const TemporaryDirectory templates;
  templates.write("magic_link.subject", "Sign in");
  templates.write("magic_link.txt", "{{link}} {{expires_in}} {{email}}");
  rig.connection->run(
      "SELECT mailroom_create_action('magic_link', path => '/magic', lifetime => '1 hour', template => 'magic_link')");
  rig.connection->run(
      "SELECT mailroom_send(ARRAY['Ada <ada@mail.example>', 'bob@mail.example'], action => 'magic_link', "
      "reference => 'user:7')");
  TestRelay relay;
  send_once(rig, relay, {"--templates", templates.path().string()});
  REQUIRE(relay.taken().size() == 2);
  std::set<std::string> tokens;
  std::set<std::string> ids;
  for (const auto& mail : relay.taken()) {
    tokens.insert(token_of(mail));
    const auto read = read_by_gmime(mail.message);
    ids.insert(header_of(read, "Message-ID"));
    CHECK(read.parts.front().content.find("https://app.example/magic_link?token=") == 0);
    CHECK(read.parts.front().content.find(" 60 minutes " + mail.to) != std::string::npos);
  }
  CHECK(tokens.size() == 2);
  CHECK(tokens.count("") == 0);
  CHECK(ids.size() == 1);
}

TEST_CASE("without send.link a running sender mails what has no link, and a mail with one waits for it") {
  DeliveryRig rig(0);
  const TemporaryDirectory templates;
  templates.write("magic_link.subject", "Sign in");
  templates.write("magic_link.txt", "{{link}}");
  const std::vector<std::string> with_templates{"--templates", templates.path().string()};
  rig.connection->run("SELECT mailroom_send(ARRAY['a@mail.example'], subject => 'a', text => 'a')");
  TestRelay relay;
  {
    TestSender sender(rig.database.conninfo(), relay.url(), with_templates, no_link);
    REQUIRE(eventually([&] { return rig.count("accepted") == 1; }));
    rig.connection->run(
        "SELECT mailroom_create_action('magic_link', path => '/magic', lifetime => '1 hour')");
    rig.connection->run(
        "SELECT mailroom_send(ARRAY['b@mail.example'], action => 'magic_link'), "
        "mailroom_send(ARRAY['c@mail.example'], subject => 'c', text => 'c')");
    insert_accounts(*rig.connection, 1);
    REQUIRE(eventually([&] { return rig.count("accepted") == 2 && rig.count("deferred") == 2; }));
    CHECK(sender.stop() == 0);
    CHECK(contains(sender.log(), "send.link is not set; a mail with a link waits until it is"));
    CHECK(contains(sender.log(), "state=deferred reason=\"send.link is not set\""));
  }
  CHECK(outcomes(*rig.connection) ==
        "accepted a@mail.example; deferred send.link is not set; accepted c@mail.example; "
        "deferred send.link is not set");
  // What waits holds up no later start.
  rig.connection->run("SELECT mailroom_send(ARRAY['d@mail.example'], subject => 'd', text => 'd')");
  send_once(rig, relay, with_templates, no_link);
  CHECK(rig.count("accepted") == 3);
  rig.due_now();
  send_once(rig, relay, with_templates);
  CHECK(rig.count("accepted") == 5);
  CHECK(rig.count("deferred") == 0);
}

TEST_CASE("without send.link a sender does not start while mails with a link wait, and says so") {
  DeliveryRig rig(1);
  rig.connection->run("SELECT mailroom_send(ARRAY['a@mail.example'], subject => 'a', text => 'a')");
  TestRelay relay;
  const auto refused = said_by(rig, relay, {"--once"}, 3);
  CHECK(contains(refused,
                 "send.link is not set, and mails with a link wait in the queue mailroom, which takes "
                 "activation,recovery\n"));
  CHECK(contains(refused, "hint: for example send.link: https://app.example/{action}?token={token}"));
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM mailroom_batches") == 0);
  const auto preview = said_by(rig, relay, {"--dry-run"}, 0);
  CHECK(contains(preview, "(deferred: send.link is not set)"));
  CHECK(contains(preview, "1 token would be mailed; 1 would not"));
  // So does a built-in mail for trial, which has an example of a link.
  CHECK(contains(said_by(rig, relay, {"--to", "me@mail.example"}, 3), "send.link is not set\n"));
  const TemporaryDirectory templates;
  templates.write("receipt.subject", "Receipt");
  templates.write("receipt.txt", "Thank you");
  const std::vector<std::string> trial{"--to",    "me@mail.example", "--template",
                                       "receipt", "--templates",     templates.path().string()};
  CHECK(contains(said_by(rig, relay, trial, 0), "send.link is not set; the mail has no link"));
  CHECK(recipients_of(relay) == std::set<std::string>{"me@mail.example"});
  // A queue without such actions needs none, nor does one where no such mail waits.
  rig.connection->run("INSERT INTO jobs (job_type, last_seq) VALUES ('messages', 0)");
  rig.connection->run("INSERT INTO mailroom_queues (name, actions) VALUES ('messages', '{message}')");
  send_once(rig, relay, {"--queue", "messages"}, no_link);
  CHECK(outcomes(*rig.connection) == "accepted a@mail.example");
  rig.connection->run("UPDATE tokens SET consumed_at = 1 WHERE account IS NOT NULL");
  send_once(rig, relay, {}, no_link);
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM mailroom_deliveries WHERE state = 'accepted'") ==
        2);
}

TEST_CASE("an unknown profile waits, and a mail that is too large does not leave") {
  DeliveryRig rig(0);
  rig.connection->run(
      "SELECT mailroom_send(ARRAY['a@mail.example'], subject => 'a', text => 'a', profile => 'brand'), "
      "mailroom_send(ARRAY['b@mail.example'], subject => 'b', text => repeat('b', 70000)), "
      "mailroom_send(ARRAY['c@mail.example', 'd@mail.example'], subject => 'c', text => 'c', attachments => "
      "jsonb_build_array(jsonb_build_object('name', 'c', 'content', encode(convert_to(repeat('c', 70000), 'UTF8'), "
      "'base64')))), "
      "mailroom_send(ARRAY['e@mail.example'], subject => 'e', text => 'e', profile => 'default')");
  TestRelay relay;
  send_once(rig, relay, {}, {{"MAILROOM_SEND_MAX_SIZE", "64kB"}});
  CHECK(outcomes(*rig.connection).find("deferred there is no profile brand; rejected the mail has 7") == 0);
  CHECK(rig.count("rejected") == 3);
  CHECK(value<int>(*rig.connection,
                   "SELECT count(*) FROM mailroom_deliveries WHERE reply = "
                   "'its attachments have 70,000 bytes, and a mail at most 65,536 (send.max_size)'") == 2);
  CHECK(recipients_of(relay) == std::set<std::string>{"e@mail.example"});
}

TEST_CASE("a recipient that no relay could take keeps nobody else from a copy") {
  DeliveryRig rig(0);
  // The database is less strict than the sender: IDNA has no such character in a domain.
  rig.connection->run(
      "SELECT mailroom_send(ARRAY['a@mail.example', U&'b@\\2488x.example'], subject => 'a', text => 'a')");
  TestRelay relay;
  send_once(rig, relay);
  CHECK(outcomes(*rig.connection).starts_with("accepted a@mail.example; rejected "));
  REQUIRE(relay.taken().size() == 1);
  CHECK(read_by_gmime(relay.taken().front().message).to.size() == 1);
}

}  // namespace mailroom::test::send_message_test
