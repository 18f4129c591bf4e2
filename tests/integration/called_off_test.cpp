// An application is told what it, or an operator, has cancelled or replaced: once, whatever way it was.

#include <set>

#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/delivery_rig.hpp"
#include "support/finished_run.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::called_off_test {
namespace {

struct CalledOffRig : DeliveryRig {
  bool is_up = true;
  TestRelay relay{{.play = [this](const RelayMoment& moment) {
    const bool refuses = moment.step == RelayStep::rcpt && !is_up;
    return refuses ? RelayAnswer::reply("451 4.2.0 come back later") : RelayAnswer{};
  }}};

  CalledOffRig() : DeliveryRig(0) { connection->run("SELECT mailroom_want_outcomes(true)"); }

  std::int64_t ask(const std::string& to, const std::string& more = {}) {
    return value<std::int64_t>(
        *connection, "SELECT mailroom_send(ARRAY['" + to + "'], subject => 's', text => 't'" + more + ")");
  }
  std::string cancel(std::int64_t message) {
    return value<std::string>(*connection, fmt::format("SELECT mailroom_cancel({})", message));
  }
  /// What was kept as final since the last time: `1 cancelled, 2 replaced`, by message; with `.2` for the
  /// second recipient of one without a token.
  std::string told() {
    return value<std::string>(*connection, R"(
WITH gone AS (DELETE FROM mailroom_outcomes RETURNING *)
SELECT coalesce(string_agg(concat(coalesce(t.message, g.message), '.' || g.recipient, ' ', g.state), ', ' ORDER BY g.id), '')
FROM gone g LEFT JOIN tokens t ON t.id = g.token WHERE g.state <> 'deferred')");
  }
  void send() {
    TestSender sender(database.conninfo(), relay.url(), {"--once"});
    sender.wait();
  }
  void run(std::vector<std::string> command) {
    command.insert(command.begin(), mailroom_binary);
    command.emplace_back("--yes");
    const auto done = run_to_end(command, {{"MAILROOM_DATABASE_URL", database.conninfo()}});
    INFO(done.errors);
    REQUIRE(done.status == 0);
  }
};

}  // namespace

TEST_CASE("a message that waits is told of when it is cancelled, and no more when a claim passes it") {
  CalledOffRig rig;
  CHECK(rig.cancel(rig.ask("ada@mail.example")) == "cancelled");
  CHECK(rig.told() == "1 cancelled");
  rig.send();
  CHECK(rig.told().empty());
}

TEST_CASE("a scheduled message is told of for each of its recipients") {
  CalledOffRig rig;
  const auto message = rig.ask(
      "ada@mail.example",
      ", cc => ARRAY['bob@mail.example', 'Ada <ADA@mail.example>'], send_after => now() + interval '1 h'");
  CHECK(rig.cancel(message) == "cancelled");
  CHECK(rig.told() == "1.1 cancelled, 1.2 cancelled");
}

TEST_CASE("what a newer message with its key replaces is told of as replaced") {
  CalledOffRig rig;
  const std::string key = ", idempotency_key => 'k', options => '{\"replace\": true}'";
  rig.ask("ada@mail.example", key);
  rig.ask("bob@mail.example", key);
  CHECK(rig.told() == "1 replaced");
  rig.ask("cid@mail.example", key + ", send_after => now() + interval '1 h'");
  rig.ask("dan@mail.example", key);
  CHECK(rig.told() == "3 replaced, 5.1 replaced");
  rig.send();
  CHECK(rig.told() == "7 accepted");
}

TEST_CASE("a deferred message is told of once, also when its turn comes") {
  CalledOffRig rig;
  const auto message = rig.ask("ada@mail.example");
  rig.is_up = false;
  rig.send();
  CHECK(rig.told().empty());
  CHECK(rig.cancel(message) == "cancelled");
  CHECK(rig.told() == "1 cancelled");
  rig.due_now();
  rig.is_up = true;
  rig.send();
  CHECK(rig.told().empty());
  CHECK(rig.deliveries() == "1 cancelled 1");
}

TEST_CASE("a message in the hands of a sender is told of by what became of it") {
  CalledOffRig rig;
  const auto message = rig.ask("ada@mail.example");
  auto session = attach_sender(rig.database);
  const auto lease = session->claim({.limit = 1, .partial = true}).lease;
  REQUIRE(lease);
  CHECK(rig.cancel(message) == "sending");
  CHECK(rig.told().empty());
  claim::Receipt receipt{*lease, {}};
  receipt.outcomes = {
      {.token = 1, .state = fate::Outcome::cancelled, .reply = "the token has been consumed"}};
  session->claim({.limit = 0, .receipt = receipt});
  CHECK(rig.told() == "1 cancelled");
}

TEST_CASE("a token that an application has consumed before its mail left is told of") {
  CalledOffRig rig;
  rig.ask("ada@mail.example");
  rig.connection->run("UPDATE tokens SET consumed_at = 1");
  rig.send();
  CHECK(rig.told() == "1 cancelled");
}

TEST_CASE("who is forgotten is told of without an address") {
  CalledOffRig rig;
  rig.ask("ada@mail.example", ", cc => ARRAY['bob@mail.example']");
  rig.ask("ada@mail.example", ", cc => ARRAY['bob@mail.example'], send_after => now() + interval '1 h'");
  rig.run({"message", "forget", "ada@mail.example"});
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM mailroom_outcomes WHERE address IS NOT NULL") == 0);
  CHECK(rig.told() == "1 cancelled, 2.1 cancelled");
  rig.send();
  CHECK(rig.told() == "1 accepted");
}

TEST_CASE("an operator's cancellations are told of") {
  CalledOffRig rig;
  rig.ask("ada@mail.example");
  rig.run({"message", "cancel", "1"});
  CHECK(rig.told() == "1 cancelled");
  rig.connection->run(
      "INSERT INTO mailroom_suppressions (address, kind, reason, added_by) "
      "VALUES ('bob@mail.example', 'operator', 'r', 'a')");
  rig.ask("bob@mail.example");
  rig.send();
  CHECK(rig.told() == "2 cancelled");
  rig.ask("cid@mail.example");
  rig.run({"rewind-cursor", "--to-end"});
  CHECK(rig.told() == "3 cancelled");
}

TEST_CASE("what waits in a queue that is dropped is told of, and what has left is not again") {
  CalledOffRig rig;
  rig.ask("ada@mail.example");
  rig.send();
  CHECK(rig.told() == "1 accepted");
  rig.ask("bob@mail.example");
  rig.is_up = false;
  rig.send();
  rig.ask("cid@mail.example");
  rig.run({"queue", "create", "other", "--copy"});
  rig.run({"queue", "drop", "mailroom"});
  CHECK(rig.told() == "3 cancelled, 2 cancelled");
}

TEST_CASE("a deferral that a rewind brings forward is no end") {
  CalledOffRig rig;
  rig.ask("ada@mail.example");
  rig.is_up = false;
  rig.send();
  rig.connection->run("SELECT * FROM mailroom_rewind('mailroom', 0, 10, '{}')");
  CHECK(rig.told().empty());
  rig.is_up = true;
  rig.send();
  CHECK(rig.told() == "1 accepted");
}

TEST_CASE("nothing is kept while nobody wants it, and a notification goes out all the same") {
  CalledOffRig rig;
  rig.connection->run("SELECT mailroom_want_outcomes(false)");
  auto listener = rig.database.connect();
  listener->listen("mailroom_outcome", db::Connection::Senders::all);
  rig.cancel(rig.ask("ada@mail.example", ", options => '{\"notify\": true}'"));
  rig.cancel(rig.ask("bob@mail.example"));
  CHECK(eventually([&] { return listener->take_payloads() == std::set<std::string>{"1"}; }));
  CHECK(rig.told().empty());
}

}  // namespace mailroom::test::called_off_test
