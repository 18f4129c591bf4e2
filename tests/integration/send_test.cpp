// `mailroom send` as users run it: a real database, and a relay that answers as each test says.

#include <csignal>
#include <map>
#include <set>
#include <sys/stat.h>

#include "crypto/key_ring.hpp"
#include "health/queue_health.hpp"
#include "support/actions.hpp"
#include "support/catch.hpp"
#include "support/delivery_rig.hpp"
#include "support/test_collector.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::send_test {
namespace {

/// The addresses of the recipients, each with the number of its mails.
std::map<std::string, int> recipients(const TestRelay& relay) {
  std::map<std::string, int> counts;
  for (const auto& mail : relay.taken())
    ++counts[mail.to];
  return counts;
}

/// Waits until a sender has asked the database as many times again.
void await_polls(db::Connection& connection, int times) {
  std::set<std::string> asked;
  CHECK(eventually([&] {
    for (const auto& row : connection.run("SELECT query_start::text FROM pg_stat_activity WHERE datname = "
                                          "current_database() AND application_name LIKE 'mailroom send%'"))
      asked.insert(row[0].as<std::string>());
    return asked.size() > static_cast<std::size_t>(times);
  }));
}

RelayAnswer for_recipient(const RelayMoment& moment, RelayStep step, const std::string& part,
                          const std::string& text) {
  if (moment.step != step || moment.recipient.find(part) == std::string::npos) return {};
  return RelayAnswer::reply(text);
}

}  // namespace

TEST_CASE("send mails each token once, with a link whose token verifies, and records the relay's answer") {
  DeliveryRig rig(25);
  TestRelay relay;
  TestSender sender(rig.database.conninfo(), relay.url(), {"--once"});
  CHECK(sender.wait() == 0);
  INFO(sender.log());
  CHECK(sender.output().empty());
  CHECK(rig.count("accepted") == 25);
  CHECK(recipients(relay).size() == 25);
  crypto::Verifier verifier(crypto::KeyRing{crypto::Key::from_hex(test_key, "the test"), {}},
                            queue::Actions::built_in().signed_paths());
  for (const auto& mail : relay.taken()) {
    const auto decoded = crypto::decode_token(token_of(mail));
    REQUIRE(decoded);
    CHECK(verifier.verify(*decoded, "", true));
    CHECK(sender.log().find(token_of(mail)) == std::string::npos);
  }
  CHECK(value<int>(*rig.connection,
                   "SELECT count(*) FROM mailroom_deliveries WHERE code = 250 AND reply <> '' AND "
                   "sink LIKE '127.0.0.1:%'") == 25);
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM mailroom_batches WHERE emitted_at IS NULL") == 0);
}

TEST_CASE("send records what the relay defers and rejects, and tries deferred mails again") {
  DeliveryRig rig(20);
  TestRelay relay({.play = [](const RelayMoment& moment) {
    if (moment.recipient.find("user3@") != std::string::npos)
      return for_recipient(moment, RelayStep::rcpt, "@", "451 4.7.1 greylisted");
    return for_recipient(moment, RelayStep::rcpt, "user7@", "550 5.1.1 no such user");
  }});
  TestSender first(rig.database.conninfo(), relay.url(), {"--once"});
  CHECK(first.wait() == 0);
  CHECK(rig.count("accepted") == 18);
  CHECK(value<std::string>(
            *rig.connection,
            "SELECT state || ' ' || code || ' ' || reply FROM mailroom_deliveries WHERE token = 7") ==
        "rejected 550 5.1.1 no such user");
  CHECK(value<bool>(*rig.connection,
                    "SELECT not_before BETWEEN last_at + interval '12 s' AND last_at + interval '18 s' "
                    "FROM mailroom_deliveries WHERE token = 3"));
  rig.due_now();
  TestRelay willing;
  TestSender second(rig.database.conninfo(), willing.url(), {"--once"});
  CHECK(second.wait() == 0);
  CHECK(recipients(willing) == std::map<std::string, int>{{"user3@test.example", 1}});
  CHECK(value<std::string>(*rig.connection,
                           "SELECT state || ' ' || attempts || ' ' || (earlier_attempts->0->>'reply') "
                           "FROM mailroom_deliveries WHERE token = 3") == "accepted 2 4.7.1 greylisted");
}

TEST_CASE("while the relay is unavailable, mails wait in the queue at no attempt") {
  DeliveryRig rig(5);
  std::atomic<bool> is_up = false;
  TestRelay relay({.play = [&](const RelayMoment& moment) {
    if (moment.step == RelayStep::greeting && !is_up)
      return RelayAnswer::reply("554 no", RelayAnswer::Then::close);
    return RelayAnswer{};
  }});
  TestSender sender(rig.database.conninfo(), relay.url());
  CHECK(eventually([&] { return sender.log().find("unavailable") != std::string::npos; }));
  CHECK(eventually([&] { return rig.count("deferred") > 0; }));
  CHECK(value<int>(*rig.connection, "SELECT max(attempts) FROM mailroom_deliveries") == 0);
  CHECK(eventually([&] {
    return value<int>(*rig.connection, "SELECT count(*) FROM mailroom_batches WHERE emitted_at IS NULL") == 0;
  }));
  is_up = true;
  CHECK(eventually([&] { return rig.count("accepted") == 5; }));
  CHECK(recipients(relay).size() == 5);
  CHECK(relay.taken().size() == 5);
  CHECK(sender.stop() == 0);
  CHECK(sender.log().find("available again") != std::string::npos);
}

TEST_CASE("the batch limit of a queue is for collect: send has its own") {
  DeliveryRig rig(12);
  rig.connection->run("INSERT INTO mailroom_queues (name, batch_limit) VALUES ('mailroom', '2')");
  TestRelay relay;
  TestSender sender(rig.database.conninfo(), relay.url(), {"--once", "--batch-limit", "12"});
  CHECK(sender.wait() == 0);
  CHECK(recipients(relay).size() == 12);
  CHECK(value<int>(*rig.connection, "SELECT max(emitted) FROM mailroom_batches") > 2);
}

TEST_CASE("send --once says which relays are unavailable, why, and how many mails wait") {
  DeliveryRig rig(3);
  TestRelay relay({.play = [](const RelayMoment& moment) {
    return moment.step == RelayStep::greeting ? RelayAnswer::reply("554 no", RelayAnswer::Then::close)
                                              : RelayAnswer{};
  }});
  TestSender sender(rig.database.conninfo(), "smtp://127.0.0.1:1, " + relay.url(), {"--once"});
  CHECK(sender.wait() == 4);
  INFO(sender.log());
  CHECK(sender.log().find("error: 127.0.0.1:1 is unavailable: ") != std::string::npos);
  CHECK(sender.log().find("; " + relay.url().substr(7) + " is unavailable: ") != std::string::npos);
  CHECK(sender.log().find("; 3 tokens wait in the queue") != std::string::npos);
}

TEST_CASE("the probe of a relay is not lost when there was no mail for it") {
  DeliveryRig rig(1);
  std::atomic<bool> is_up = false;
  TestRelay relay({.play = [&](const RelayMoment& moment) {
    if (moment.step == RelayStep::greeting && !is_up)
      return RelayAnswer::reply("421 busy", RelayAnswer::Then::close);
    return RelayAnswer{};
  }});
  TestSender sender(rig.database.conninfo(), relay.url(), {"--poll-interval", "100ms"});
  REQUIRE(eventually([&] { return rig.count("deferred") == 1; }));
  rig.connection->run("UPDATE tokens SET consumed_at = 1");
  is_up = true;
  // The deferred token is not mailed, and the relay's next probe comes without a mail. While a sender has it,
  // the others wait for longer than after any failure.
  REQUIRE(eventually([&] { return rig.count("cancelled") == 1; }));
  REQUIRE(eventually([&] {
    return value<bool>(*rig.connection, "SELECT probe_at > failed_at + interval '40 s' FROM mailroom_sinks");
  }));
  await_polls(*rig.connection, 10);
  insert_accounts(*rig.connection, 1, "later");
  CHECK(eventually([&] { return recipients(relay).size() == 1; }));
  CHECK(sender.stop() == 0);
}

TEST_CASE("send --once with an unavailable relay says so, and leaves the tokens in the queue") {
  DeliveryRig rig(3);
  TestRelay relay(
      {.play = TestRelay::at(RelayStep::greeting, RelayAnswer::reply("421 busy", RelayAnswer::Then::close))});
  TestSender sender(rig.database.conninfo(), relay.url(), {"--once"});
  CHECK(sender.wait() == 4);
  CHECK(sender.log().find("unavailable") != std::string::npos);
  CHECK(rig.deliveries() == "1 deferred 0, 2 deferred 0, 3 deferred 0");
  const auto status = status::read_queue_status(*rig.connection, "mailroom");
  CHECK(status.pending.deferred == 3);
  CHECK(status.pending.total() == 3);
  const auto findings = health::judge_queue(status, {});
  REQUIRE(health::worst(findings) == health::Severity::failure);
  CHECK(findings[0].code == "no_collector");
}

TEST_CASE("a mail without an answer is sent once more with the same bytes, then it is unknown") {
  DeliveryRig rig(1);
  TestRelay relay({.play = TestRelay::at(RelayStep::end, RelayAnswer::nothing(RelayAnswer::Then::close))});
  CHECK(TestSender(rig.database.conninfo(), relay.url(), {"--once"}).wait() == 0);
  CHECK(rig.deliveries() == "1 deferred 1");
  rig.due_now();
  CHECK(TestSender(rig.database.conninfo(), relay.url(), {"--once"}).wait() == 0);
  CHECK(rig.deliveries() == "1 unknown 2");
  const auto taken = relay.taken();
  REQUIRE(taken.size() == 2);
  CHECK(taken[0].message == taken[1].message);
}

TEST_CASE("with when_unknown hold, a mail without an answer is not sent again") {
  DeliveryRig rig(1);
  TestRelay relay({.play = TestRelay::at(RelayStep::end, RelayAnswer::nothing(RelayAnswer::Then::close))});
  CHECK(TestSender(rig.database.conninfo(), relay.url(), {"--once"}, {{"MAILROOM_SEND_WHEN_UNKNOWN", "hold"}})
            .wait() == 0);
  CHECK(rig.deliveries() == "1 unknown 1");
}

TEST_CASE("SIGTERM gives the mails of a hanging relay back to the queue") {
  DeliveryRig rig(6);
  TestRelay relay({.play = TestRelay::at(RelayStep::rcpt, RelayAnswer::nothing(RelayAnswer::Then::hang))});
  TestSender sender(rig.database.conninfo(), relay.url());
  CHECK(eventually([&] { return relay.connections() >= 4; }));
  CHECK(eventually([&] { return relay.commands().size() >= 12; }));
  // They are two batches, of which the second is claimed ahead.
  CHECK(eventually([&] {
    return value<int>(*rig.connection,
                      "SELECT coalesce(sum(mailroom_ids_in(ids)), 0)::int FROM mailroom_batches") == 6;
  }));
  CHECK(sender.stop() == 0);
  CHECK(count(sender.log(), "stopping: waiting for the answers of 127.0.0.1:") == 1);
  INFO(sender.log());
  CHECK(rig.deliveries() ==
        "1 deferred 0, 2 deferred 0, 3 deferred 0, 4 deferred 0, 5 deferred 0, 6 deferred 0");
  CHECK(status::read_queue_status(*rig.connection, "mailroom").pending.total() == 6);
  CHECK(relay.taken().empty());
}

TEST_CASE("a sender that is killed repeats at most the mails of its batch, with the same bytes") {
  const auto step =
      GENERATE(RelayStep::ehlo, RelayStep::mail, RelayStep::rcpt, RelayStep::data, RelayStep::end);
  CAPTURE(step);
  DeliveryRig rig(8);
  TestRelay hanging({.play = [&](const RelayMoment& moment) {
    return moment.step == step ? RelayAnswer::nothing(RelayAnswer::Then::hang) : RelayAnswer{};
  }});
  {
    TestSender doomed(rig.database.conninfo(), hanging.url(), {"--batch-limit", "4", "--connections", "2"});
    CHECK(eventually([&] { return hanging.connections() >= 2; }));
    if (step == RelayStep::end) CHECK(eventually([&] { return hanging.taken().size() == 2; }));
    doomed.process().signal(SIGKILL);
    doomed.wait();
  }
  TestRelay relay;
  TestSender sender(rig.database.conninfo(), relay.url(), {"--once"});
  CHECK(sender.wait() == 0);
  CHECK(rig.count("accepted") == 8);
  CHECK(recipients(relay).size() == 8);
  CHECK(relay.taken().size() == 8);
  for (const auto& before : hanging.taken()) {
    for (const auto& after : relay.taken()) {
      if (before.to == after.to) CHECK(before.message == after.message);
    }
  }
}

TEST_CASE("of several recovery tokens of an account only the newest is mailed") {
  DeliveryRig rig(1);
  rig.connection->run("UPDATE tokens SET consumed_at = 1");
  rig.connection->run("UPDATE accounts SET status = 'active'");
  rig.connection->run(
      "INSERT INTO tokens (account, action) SELECT 1, 'password_recovery' FROM generate_series(1, 3)");
  TestRelay relay;
  CHECK(TestSender(rig.database.conninfo(), relay.url(), {"--once"}).wait() == 0);
  CHECK(relay.taken().size() == 1);
  CHECK(value<std::string>(*rig.connection,
                           "SELECT string_agg(token || ' ' || state || ' ' || reply, ', ' ORDER BY token) "
                           "FROM mailroom_deliveries WHERE state = 'cancelled'") ==
        "2 cancelled superseded by token 4, 3 cancelled superseded by token 4");
}

TEST_CASE("addresses that cannot be mailed are rejected, and nothing is injected") {
  TestDatabase database;
  const auto connection = database.connect();
  const std::vector<std::string> addresses{"a b@mail.example", "<x@mail.example>", "-oQ/tmp@mail.example",
                                           "\"q@mail.example", "no-at-sign",       "a@[127.0.0.1]",
                                           "a@b@c.example",    "a@mail.example>"};
  for (const auto& address : addresses)
    connection->run("INSERT INTO accounts (email, login) VALUES ($1, $1)", address);
  connection->run(
      "INSERT INTO accounts (email, login) VALUES ('good@mail.example', '<script>alert(1)</script>')");
  TestRelay relay;
  CHECK(TestSender(database.conninfo(), relay.url(), {"--once"}).wait() == 0);
  CHECK(recipients(relay) == std::map<std::string, int>{{"good@mail.example", 1}});
  const auto message = relay.taken().front().message;
  const auto html = message.substr(message.find("Content-Type: text/html"));
  CHECK(html.find("&lt;script&gt;alert") != std::string::npos);
  CHECK(html.find("<script>") == std::string::npos);
  CHECK(value<int>(*connection,
                   "SELECT count(*) FROM mailroom_deliveries WHERE state = 'rejected' AND reply <> ''") ==
        static_cast<int>(addresses.size()));
}

TEST_CASE("send --to sends one mail for trial and claims nothing") {
  DeliveryRig rig(2);
  TestRelay relay;
  TestSender sender(rig.database.conninfo(), relay.url(), {"--to", "me@test.example", "--account", "user1"});
  CHECK(sender.wait() == 0);
  CHECK(sender.output().find("accepted by") == 0);
  CHECK(recipients(relay) == std::map<std::string, int>{{"me@test.example", 1}});
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM mailroom_batches") == 0);
  CHECK(rig.deliveries().empty());
}

TEST_CASE("send --to says which relay has not accepted the mail, and why") {
  DeliveryRig rig(1);
  TestRelay relay({.play = TestRelay::at(RelayStep::rcpt, RelayAnswer::reply("550 5.1.1 no such user"))});
  TestSender sender(rig.database.conninfo(), relay.url(), {"--to", "me@test.example", "--account", "user1"});
  CHECK(sender.wait() == 1);
  CHECK(sender.log().find(" has not accepted the mail (rejected): 550 5.1.1 no such user") !=
        std::string::npos);
}

TEST_CASE("senders share that the relay is unavailable, and that it is back") {
  DeliveryRig rig(0);
  std::atomic<bool> is_up = false;
  std::atomic<int> greeted = 0;
  TestRelay relay({.play = [&](const RelayMoment& moment) {
    if (moment.step != RelayStep::greeting) return RelayAnswer{};
    ++greeted;
    return is_up ? RelayAnswer{} : RelayAnswer::reply("421 busy", RelayAnswer::Then::close);
  }});
  TestSender first(rig.database.conninfo(), relay.url());
  REQUIRE(first.connected());
  TestSender second(rig.database.conninfo(), relay.url());
  REQUIRE(second.connected());
  insert_accounts(*rig.connection, 1);
  REQUIRE(eventually([&] {
    return value<int>(*rig.connection, "SELECT coalesce(max(failures), 0) FROM mailroom_sinks") >= 3;
  }));
  const auto sink = rig.connection->run("SELECT name, reason, since < failed_at FROM mailroom_sinks");
  REQUIRE(sink.size() == 1);
  CHECK(relay.url().find(sink[0][0].as<std::string>()) != std::string::npos);
  CHECK(sink[0][1].as<std::string>().find("busy") != std::string::npos);
  CHECK(sink[0][2].as<bool>());
  // Each probe is one connection, whichever of the two makes it: the failures count them all.
  CHECK(greeted <= value<int>(*rig.connection, "SELECT failures FROM mailroom_sinks") + 1);
  is_up = true;
  CHECK(eventually([&] { return rig.count("accepted") == 1; }));
  CHECK(eventually([&] { return value<int>(*rig.connection, "SELECT count(*) FROM mailroom_sinks") == 0; }));
  CHECK(first.stop() == 0);
  CHECK(second.stop() == 0);
}

TEST_CASE("a relay that asks for a lower rate for one mail delays no other") {
  DeliveryRig rig(20);
  TestRelay relay({.play = [](const RelayMoment& moment) {
    return for_recipient(moment, RelayStep::rcpt, "user1@", "454 4.7.0 too many mails");
  }});
  TestSender sender(rig.database.conninfo(), relay.url(), {"--batch-limit", "5"});
  CHECK(eventually([&] { return rig.count("accepted") == 19; }));
  CHECK(value<std::string>(*rig.connection,
                           "SELECT code || ' ' || reply || ' ' || attempts FROM mailroom_deliveries WHERE "
                           "state = 'deferred'") == "454 4.7.0 too many mails 1");
  CHECK(sender.log().find("asks for a lower rate") == std::string::npos);
  CHECK(sender.stop() == 0);
}

TEST_CASE("send --dry-run shows what would be mailed, and claims nothing") {
  DeliveryRig rig(2);
  rig.connection->run("INSERT INTO accounts (email, login) VALUES ('a b@mail.example', 'bad')");
  rig.connection->run("UPDATE tokens SET consumed_at = 1 WHERE id = 2");
  TestSender sender(rig.database.conninfo(), "smtp://127.0.0.1:1", {"--dry-run"});
  CHECK(sender.wait() == 0);
  const auto output = sender.output();
  CHECK(output.find("user1@test.example") != std::string::npos);
  CHECK(output.find("(cancelled: the token has been consumed)") != std::string::npos);
  CHECK(output.find("(rejected: ") != std::string::npos);
  CHECK(output.find("1 token would be mailed; 2 would not") != std::string::npos);
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM mailroom_batches") == 0);
  CHECK(rig.deliveries().empty());
}

TEST_CASE("send logs in over TLS, and shows no password, token, code or link at any level") {
  DeliveryRig rig(3);
  rig.connection->run("UPDATE accounts SET status = 'active' WHERE id = 1");
  rig.connection->run("INSERT INTO tokens (account, action) VALUES (1, 'password_recovery')");
  const TestCertificate certificate;
  const std::string password = "open sesame 4711";
  const TestRelay relay({.play =
                             [](const RelayMoment& moment) {
                               return for_recipient(moment, RelayStep::rcpt, "user2@",
                                                    "550 5.1.1 open sesame 4711");
                             },
                         .certificate = &certificate,
                         .offers_starttls = true,
                         .user = "alice",
                         .password = password});
  TemporaryDirectory directory;
  const auto file = directory.write("password", password + "\n");
  REQUIRE(chmod(file.c_str(), 0600) == 0);
  TestSender sender(
      rig.database.conninfo(), relay.url("alice"), {"--once", "--log-level", "debug"},
      {{"MAILROOM_SEND_PASSWORD_FILE", file}, {"MAILROOM_SEND_CA_FILE", certificate.certificate()}});
  CHECK(sender.wait() == 0);
  INFO(sender.log());
  REQUIRE(relay.taken().size() == 2);
  for (const auto& mail : relay.taken()) {
    CHECK(mail.encrypted);
    CHECK(mail.user == "alice");
    CHECK(sender.log().find(token_of(mail)) == std::string::npos);
  }
  CHECK(sender.log().find(password) == std::string::npos);
  CHECK(sender.log().find("app.example/") == std::string::npos);
  for (const auto& row : rig.connection->run("SELECT code FROM tokens WHERE action = 'password_recovery'"))
    CHECK(sender.log().find(row[0].c_str()) == std::string::npos);
  CHECK(value<std::string>(*rig.connection, "SELECT reply FROM mailroom_deliveries WHERE state = 'rejected'")
            .find(password) == std::string::npos);
}

TEST_CASE("three senders together keep to the rate of their queue, over any window") {
  constexpr double rate = 50;
  constexpr int burst = 10;
  // A claim reads the allowance a moment before it writes the time of its batch.
  constexpr double moment = 0.25;
  DeliveryRig rig(90);
  TestRelay relay;
  set_rate(*rig.connection, "mailroom", 1 / rate, burst);
  TestSender first(rig.database.conninfo(), relay.url());
  TestSender second(rig.database.conninfo(), relay.url());
  TestSender third(rig.database.conninfo(), relay.url());
  CHECK(eventually([&] { return rig.count("accepted") == 90; }));
  struct Claim {
    double at;
    int tokens;
  };
  std::vector<Claim> claims;
  for (
      const auto& row : rig.connection->run(
          "SELECT extract(epoch FROM claimed_at), emitted FROM mailroom_batches WHERE emitted > 0 ORDER BY claimed_at"))
    claims.push_back({row[0].as<double>(), row[1].as<int>()});
  REQUIRE(claims.size() >= 9);
  for (std::size_t from = 0; from < claims.size(); ++from) {
    int tokens = 0;
    for (std::size_t to = from; to < claims.size(); ++to) {
      tokens += claims[to].tokens;
      CHECK(tokens <= rate * (claims[to].at - claims[from].at + moment) + burst);
    }
  }
  CHECK(first.stop() == 0);
  CHECK(second.stop() == 0);
  CHECK(third.stop() == 0);
}

}  // namespace mailroom::test::send_test
