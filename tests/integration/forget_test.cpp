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
  Forgotten forget(const std::vector<std::string>& addresses, const std::string& reference = {}) {
    return mailroom::forget(
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

  const auto plan = plan_forgetting(*rig.connection, {.addresses = {"ADA@mail.example"}, .reference = {}});
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

TEST_CASE("an address is found in the form in which it is mailed") {
  ForgetRig rig;
  rig.connection->run("SELECT mailroom_send(ARRAY['ada@bücher.example'], subject => 'Hello', text => 'a')");
  rig.send();
  CHECK(rig.forget({"Ada@Bücher.example"}).deliveries == 1);
  CHECK_FALSE(has(rig.dump(), "xn--bcher"));
}

}  // namespace mailroom::test::forget_test
