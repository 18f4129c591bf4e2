// Somebody who is forgotten is in no row that mailroom has written, and others get their mails.

#include <algorithm>
#include <cctype>

#include "messages/forgetting.hpp"
#include "support/catch.hpp"
#include "support/delivery_rig.hpp"
#include "support/finished_run.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::forget_test {
namespace {

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

struct ForgetRig : DeliveryRig {
  std::string logs;

  ForgetRig() : DeliveryRig(0) {}

  /// Sends what is due; the relay repeats the address in each answer.
  void send() {
    TestRelay relay({.play = [](const RelayMoment& moment) {
      if (moment.step != RelayStep::end) return RelayAnswer{};
      const bool refuses = moment.recipient.find("full") != std::string::npos;
      return RelayAnswer::reply((refuses ? "452 <" : "250 <") + moment.recipient + "> noted");
    }});
    TestSender sender(database.conninfo(), relay.url(), {"--once"}, {{"MAILROOM_LOG_LEVEL", "debug"}});
    sender.wait();
    logs += sender.log();
  }
  messages::Forgotten forget(const std::vector<std::string>& addresses, const std::string& reference = {}) {
    return mailroom::messages::forget(
        *connection, {.addresses = addresses, .reference = reference},
        {.actor = "ann@host", .reason = "request of " + (addresses.empty() ? reference : addresses[0])});
  }
  /// All rows of the database, in lower case.
  std::string dump() {
    const auto run = run_to_end({"/bin/sh", "-c", "pg_dump --data-only " + database.name()}, {});
    REQUIRE(run.status == 0);
    return lower(run.output);
  }
  std::string message(int id) {
    const auto row = connection->run(
        "SELECT array_to_string(recipients, ',', '-'), coalesce(subject, '-'), coalesce(reference, '-'), erased_at IS NOT NULL, "
        "cancelled_at IS NOT NULL FROM mailroom_messages WHERE id = $1",
        id)[0];
    return fmt::format("{} {} {} {} {}", row[0].c_str(), row[1].c_str(), row[2].c_str(), row[3].c_str(),
                       row[4].c_str());
  }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("nothing of a forgotten address is left in any row or log, in whatever form it was") {
  ForgetRig rig;
  rig.connection->run("INSERT INTO accounts (email, login) VALUES ('ada@mail.example', 'ada')");
  rig.connection->run(
      "SELECT mailroom_send(ARRAY['Ada Lovelace <Ada@Mail.Example>'], subject => 'For ada@mail.example', text => 'a', "
      "reference => 'user:ada@mail.example', idempotency_key => 'ada@mail.example welcome'), "
      "mailroom_send(ARRAY['bob@mail.example', 'ada@mail.example'], subject => 'For ADA@mail.example and Bob', text => "
      "'a', data => NULL, headers => '{\"X-For\": \"ada@mail.example\"}', bcc => ARRAY['full@mail.example']), "
      "mailroom_send(ARRAY['ada@mail.example'], subject => 'later', text => 'a', send_after => now() + interval '1 day'), "
      "mailroom_send(ARRAY['cara@mail.example'], subject => 'Another', text => 'a')");
  rig.send();
  rig.connection->run(
      "INSERT INTO mailroom_operations (kind, actor, reason, details) VALUES ('suspend', 'ann', 'ada@mail.example asked', "
      "'{\"email\": \"ada@mail.example\"}')");
  REQUIRE(rig.count("accepted") >= 3);
  CHECK(has(rig.dump(), "ada@mail.example"));

  const auto plan =
      messages::plan_forgetting(*rig.connection, {.addresses = {"ADA@mail.example"}, .reference = {}});
  CHECK(plan.messages == 3);
  CHECK(plan.shared == 1);
  CHECK(plan.waiting == 1);
  CHECK(plan.accounts == 1);
  const auto done = rig.forget({"ADA@mail.example"});
  CHECK(done.messages == 3);
  CHECK(done.cancelled == 1);
  CHECK(done.sending == 0);

  // The account is the application's.
  rig.connection->run("DELETE FROM accounts");
  const auto dump = rig.dump();
  CHECK_FALSE(has(dump, "ada@mail.example"));
  CHECK_FALSE(has(dump, "lovelace"));
  CHECK(has(dump, "cara@mail.example"));
  CHECK(has(dump, "bob@mail.example"));
  CHECK_FALSE(has(lower(rig.logs), "ada@mail.example"));
  CHECK(rig.message(1) == " - - t f");
  CHECK(rig.message(2) == "bob@mail.example, For (forgotten) and Bob - t f");
  CHECK(rig.message(3) == " - - t t");
  CHECK(rig.message(4) == "cara@mail.example Another - f f");
  // What was delivered stays on record.
  CHECK(value<int>(*rig.connection,
                   "SELECT count(*) FROM mailroom_deliveries WHERE state = 'accepted' AND address IS NULL") >=
        2);
}

TEST_CASE("a mail that waits for somebody else still goes out, and names the forgotten one no more") {
  ForgetRig rig;
  rig.connection->run(
      "SELECT mailroom_send(ARRAY['ada@mail.example', 'bob@mail.example'], subject => 'Hello', text => 'a'), "
      "mailroom_send(ARRAY['ada@mail.example', 'cy@mail.example'], subject => 'Later', text => 'a', send_after => now() + "
      "interval '1 hour')");
  rig.forget({"ada@mail.example"});
  rig.connection->run(
      "UPDATE mailroom_messages SET send_after = now() WHERE id = 2; UPDATE mailroom_schedule SET send_after = now()");
  TestRelay relay;
  TestSender sender(rig.database.conninfo(), relay.url(), {"--once"});
  CHECK(sender.wait() == 0);
  INFO(sender.log());
  std::vector<std::string> recipients;
  for (const auto& mail : relay.taken()) {
    recipients.push_back(mail.to);
    CHECK_FALSE(has(mail.message, "ada@mail.example"));
  }
  std::ranges::sort(recipients);
  CHECK(recipients == std::vector<std::string>{"bob@mail.example", "cy@mail.example"});
}

TEST_CASE("the messages of a reference are forgotten, and others to the same person are not") {
  ForgetRig rig;
  rig.connection->run(
      "SELECT mailroom_send(ARRAY['ada@mail.example'], subject => 'One', text => 'a', reference => 'user:17'), "
      "mailroom_send(ARRAY['ada@mail.example'], subject => 'Two', text => 'a', reference => 'user:18')");
  rig.send();
  const auto done = rig.forget({}, "user:17");
  CHECK(done.messages == 1);
  CHECK(done.deliveries == 1);
  CHECK(rig.message(1) == " - - t f");
  CHECK(rig.message(2) == "ada@mail.example Two user:18 f f");
}

TEST_CASE("a longer address with a forgotten one in it stays") {
  ForgetRig rig;
  rig.connection->run(
      "SELECT mailroom_send(ARRAY['da@mail.example'], subject => 'Hello', text => 'a'), "
      "mailroom_send(ARRAY['ada@mail.example', 'da@mail.example'], subject => 'From ada@mail.example.org', text => 'a')");
  rig.send();
  rig.forget({"da@mail.example"});
  CHECK(rig.message(2) == "ada@mail.example, From ada@mail.example.org - t f");
}

TEST_CASE("an address is removed from mails to others that have ended, wherever they name it") {
  ForgetRig rig;
  rig.connection->run("SELECT mailroom_want_outcomes(true)");
  const auto send = [&](const std::string& recipient, const std::string& arguments) {
    rig.connection->run(
        fmt::format("SELECT mailroom_send(ARRAY['{}@mail.example'], {})", recipient, arguments));
  };
  const std::string content = "subject => 'Hello', text => 'a'";
  send("bob", content + ", reply_to => 'Ada Lovelace <Ada@mail.example>'");
  send("bob", content + ", sender => 'Ada Lovelace <ADA@mail.example>'");
  send("bob",
       content + R"(, headers => '{"List-Unsubscribe": "<https://x.example/u?e=Ada%40mail.example>"}')");
  send("bob",
       content + ", reference => 'user:Ada@mail.example', idempotency_key => 'welcome Ada@mail.example'");
  send("bob", content + ", reference => 'user:2', idempotency_key => 'welcome ada@mail.example'");
  send("bob", "subject => 'From \"Ada Lovelace\" <ada@mail.example>', text => 'a'");
  send("bob", "subject => 'Hello', text => 'Ask ADA@MAIL.EXAMPLE.'");
  send("bob", "subject => 'Hello', html => '<a href=mailto:ada@mail.example>Ada Lovelace</a>'");
  send("bob", content + R"(, attachments => '[{"name": "ada@mail.example.txt", "content": "YQ=="}]')");
  send("bob", content + R"(, attachments => '[{"name": "a.txt", "content_type": "text/plain", "content": ")" +
                  std::string("QXNrIEFkYUBtYWlsLmV4YW1wbGUu") + R"("}]')");
  send(
      "bob",
      R"(template => 'activation', data => '{"to": {"ada@mail.example": "Ada Lovelace <ada@mail.example>"}}')");
  send("bob", content + ", bcc => ARRAY['Ada Lovelace <ada@mail.example>'], reply_to => 'ada@mail.example'");
  send("bob", content + ", profile => 'ada@mail.example'");
  send("nada", "subject => 'To nada@mail.example', text => 'a'");
  rig.send();
  rig.connection->run(
      "UPDATE mailroom_messages SET cancelled_at = now() WHERE id IN (11, 13); "
      "UPDATE tokens SET consumed_at = 1 WHERE message IN (11, 13); "
      "INSERT INTO mailroom_queues (name, paused_at, pause_reason) VALUES ('q', now(), 'ada@mail.example asked') "
      "ON CONFLICT (name) DO UPDATE SET pause_reason = 'ada@mail.example asked'; "
      "UPDATE mailroom_deliveries SET reply = '250 not for ADA@mail.example' WHERE token = 1");
  REQUIRE(has(rig.dump(), "lovelace"));

  const auto plan =
      messages::plan_forgetting(*rig.connection, {.addresses = {"ada@mail.example"}, .reference = {}});
  CHECK(plan.messages == 1);
  CHECK(plan.named == 12);
  CHECK(plan.kept == 0);
  const auto done = rig.forget({"ada@mail.example"});
  CHECK(done.named == 12);
  CHECK(done.kept == 0);
  auto dump = rig.dump();
  for (auto longer = dump.find("nada@mail"); longer != std::string::npos; longer = dump.find("nada@mail"))
    dump.replace(longer, 4, "-");
  CHECK_FALSE(has(dump, "ada@mail.example"));
  CHECK_FALSE(has(dump, "ada%40mail.example"));
  CHECK_FALSE(has(dump, "lovelace"));
  CHECK(rig.message(1) == "bob@mail.example Hello - t f");
  CHECK(rig.message(4) == "bob@mail.example Hello user:(forgotten) t f");
  CHECK(rig.message(6) == "bob@mail.example - - t f");
  CHECK(rig.message(12) == "bob@mail.example Hello - t f");
  CHECK(rig.message(14) == "nada@mail.example To nada@mail.example - f f");
  // Who got the others stays on record.
  CHECK(value<int>(*rig.connection,
                   "SELECT count(*) FROM mailroom_deliveries WHERE address = 'bob@mail.example'") >= 10);
  // No rewind asks for a content that is gone.
  CHECK(value<int>(*rig.connection,
                   "SELECT count(*) FROM tokens t JOIN mailroom_messages m ON m.id = t.message "
                   "WHERE m.subject IS NULL AND t.consumed_at IS NULL "
                   "AND t.expires_at > extract(epoch FROM clock_timestamp())") == 0);
  CHECK(messages::plan_forgetting(*rig.connection, {.addresses = {"ada@mail.example"}, .reference = {}})
            .empty());
}

TEST_CASE("a mail to others that can still be sent keeps the address, and says so") {
  ForgetRig rig;
  rig.connection->run(
      "SELECT mailroom_send(ARRAY['bob@mail.example'], subject => 'Hello', text => 'a', reply_to => 'ada@mail.example'), "
      "mailroom_send(ARRAY['bob@mail.example'], subject => 'Ask ada@mail.example', text => 'a', send_after => now() + "
      "interval '1 hour'), "
      "mailroom_send(ARRAY['full@mail.example'], subject => 'Hello', text => 'a', reply_to => 'ada@mail.example'), "
      "mailroom_send(ARRAY['cy@mail.example'], subject => 'Hello', text => 'a', bcc => ARRAY['ada@mail.example'], "
      "reply_to => 'ada@mail.example')");
  const messages::ForgetRequest request{.addresses = {"ada@mail.example"}, .reference = {}};
  const auto plan = messages::plan_forgetting(*rig.connection, request);
  CHECK(plan.messages == 1);
  CHECK(plan.named == 0);
  CHECK(plan.kept == 4);
  const auto done = rig.forget({"ada@mail.example"});
  CHECK(done.cancelled == 1);
  CHECK(done.kept == 4);
  CHECK(rig.message(2) == "bob@mail.example Ask ada@mail.example - f f");
  TestRelay relay({.play = [](const RelayMoment& moment) {
    const bool refuses = moment.step == RelayStep::end && moment.recipient.find("full") != std::string::npos;
    return refuses ? RelayAnswer::reply("452 full") : RelayAnswer{};
  }});
  CHECK(TestSender(rig.database.conninfo(), relay.url(), {"--once"}).wait() == 0);
  REQUIRE(relay.taken().size() == 2);
  for (const auto& mail : relay.taken())
    CHECK(has(mail.message, "Reply-To: ada@mail.example"));
  // The first and the last have left; one is scheduled, and one is deferred.
  const auto again = rig.forget({"ada@mail.example"});
  CHECK(again.named == 2);
  CHECK(again.kept == 2);
  rig.due_now();
  rig.connection->run(
      "UPDATE mailroom_messages SET send_after = now() WHERE id = 2; UPDATE mailroom_schedule SET send_after = now()");
  TestRelay willing;
  CHECK(TestSender(rig.database.conninfo(), willing.url(), {"--once"}).wait() == 0);
  CHECK(willing.taken().size() == 2);
  CHECK(rig.forget({"ada@mail.example"}).kept == 0);
  CHECK_FALSE(has(rig.dump(), "ada@mail.example"));
}

TEST_CASE("an outcome that the application is yet to be told of has a forgotten address no more") {
  ForgetRig rig;
  rig.connection->run("SELECT mailroom_want_outcomes(true)");
  rig.connection->run("SELECT mailroom_send(ARRAY['ada@mail.example'], subject => 'Hello', text => 'a')");
  rig.send();
  REQUIRE(value<std::string>(*rig.connection, "SELECT address FROM mailroom_outcomes") == "ada@mail.example");
  rig.forget({"Ada Lovelace <ada@mail.example>"});
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM mailroom_outcomes WHERE address IS NULL") == 1);
  CHECK_FALSE(has(rig.dump(), "ada@mail.example"));
}

TEST_CASE("keys that differ in the case of a forgotten address are both forgotten") {
  ForgetRig rig;
  rig.connection->run(
      "SELECT mailroom_send(ARRAY['bob@mail.example', 'ada@mail.example'], subject => 'Hello', text => 'a', idempotency_key => "
      "'ada@mail.example'), mailroom_send(ARRAY['bob@mail.example', 'ada@mail.example'], subject => 'Hello', text => 'a', "
      "idempotency_key => 'Ada@mail.example')");
  CHECK(rig.forget({"ada@mail.example"}).messages == 2);
  CHECK_FALSE(has(rig.dump(), "ada@mail.example"));
}

TEST_CASE("a delivery to somebody else whose answer names a forgotten address keeps its own") {
  ForgetRig rig;
  rig.connection->run("SELECT mailroom_send(ARRAY['nada@mail.example'], subject => 'Hello', text => 'a')");
  rig.send();
  rig.connection->run("UPDATE mailroom_deliveries SET reply = '250 copy to ada@mail.example'");
  CHECK(rig.forget({"ada@mail.example"}).deliveries == 1);
  CHECK(value<std::string>(*rig.connection, "SELECT address || ' ' || reply FROM mailroom_deliveries") ==
        "nada@mail.example (forgotten)");
  rig.connection->run("UPDATE mailroom_deliveries SET reply = '250 <nada@mail.example>'");
  CHECK(rig.forget({"ada@mail.example"}).deliveries == 0);
}

TEST_CASE("an address is found in the form in which it is mailed") {
  ForgetRig rig;
  rig.connection->run("SELECT mailroom_send(ARRAY['ada@bücher.example'], subject => 'Hello', text => 'a')");
  rig.send();
  CHECK(rig.forget({"Ada@Bücher.example"}).deliveries == 1);
  CHECK_FALSE(has(rig.dump(), "xn--bcher"));
  rig.connection->run("SELECT mailroom_send(ARRAY['ada@bücher.example'], subject => 'Hello', text => 'a')");
  CHECK(rig.forget({"Ada@xn--bcher-kva.example"}).messages == 1);
  CHECK_FALSE(has(rig.dump(), "bücher"));
}

}  // namespace mailroom::test::forget_test
