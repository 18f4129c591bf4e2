// What consumers tell each other of their sinks.

#include <chrono>
#include <string>

#include "base/json.hpp"
#include "claim/queue_session.hpp"
#include "support/catch.hpp"
#include "support/delivery_rig.hpp"
#include "support/outcome_rig.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::shared_sinks_test {

TEST_CASE("what one consumer has learnt of a sink, others find under its name, whatever that has in it") {
  TestDatabase database;
  const auto one = attach_sender(database);
  const auto other = attach_sender(database);
  for (const auto* const name :
       {"relay:25", "a:4222,b:4222,c:4222", "sh -c \"a, b\"@host", "{a}", "back\\slash", "NULL"}) {
    CAPTURE(name);
    const auto now = std::chrono::floor<Milliseconds>(std::chrono::system_clock::now());
    const claim::SinkState state{.name = name,
                                 .failures = 1,
                                 .since = now,
                                 .failed_at = now,
                                 .probe_at = now + std::chrono::minutes(1),
                                 .reason = "busy"};
    one->share({state}, {name}, std::nullopt);
    const auto known = other->share({}, {"another:25", name}, std::nullopt);
    REQUIRE(known.size() == 1);
    CHECK(known.front().name == name);
    CHECK(known.front().reason == "busy");
  }
}

TEST_CASE("what two consumers learn of a sink at once is added up, and what one forgets is forgotten") {
  TestDatabase database;
  const auto one = attach_sender(database);
  const auto other = attach_sender(database);
  const auto tell = [](claim::SinkBoard& board, const std::string& seen, const std::string& learnt) {
    const auto now = std::chrono::floor<Milliseconds>(std::chrono::system_clock::now());
    const auto known = board.share(
        {{.name = "relay", .since = now, .failed_at = now, .probe_at = now, .learnt = learnt, .seen = seen}},
        {"relay"}, std::nullopt);
    return known.empty() ? std::string() : json_text(parse_json(known.front().learnt));
  };
  const std::string a2 = R"({"in_row":2,"key":"a","why":"no"})";
  const std::string a5 = R"({"in_row":5,"key":"a","why":"no"})";
  const std::string b1 = R"({"in_row":1,"key":"b","why":"never"})";
  const std::string domains = R"({"domains":[{"domain":"big.example","rate":0.3}]})";
  const auto refusals = [](const std::string& entries) { return R"({"refusals":[)" + entries + "]}"; };
  const auto both = R"({"domains":[{"domain":"big.example","rate":0.3}],"refusals":[)" + a2 + "," + b1 + "]}";
  CHECK(tell(*one, "", refusals(a2)) == refusals(a2));
  // Neither has seen what the other one has told.
  CHECK(tell(*other, "", refusals(b1)) == refusals(a2 + "," + b1));
  CHECK(tell(*one, "", domains) == both);
  // Two more, and one more, since both saw two.
  CHECK(tell(*one, refusals(a2), refusals(R"({"in_row":4,"key":"a","why":"no"})")) != both);
  CHECK(tell(*other, refusals(a2), refusals(R"({"in_row":3,"key":"a","why":"no"})")).find(a5) !=
        std::string::npos);
  // One of its mails is accepted; the other consumer did not change that.
  CHECK(tell(*one, both, domains) == R"({"domains":[{"domain":"big.example","rate":0.3}]})");
  CHECK(tell(*other, both, both) == domains);
  CHECK(tell(*one, domains, "").empty());
}

TEST_CASE("senders that mail once each find together that everything is refused") {
  DeliveryRig rig(0);
  const TestRelay relay(
      {.play = TestRelay::at(RelayStep::end, RelayAnswer::reply("550 5.7.1 You have run out of credits"))});
  for (int i = 0; i < 5; ++i) {
    rig.connection->run("INSERT INTO accounts (email, login) VALUES ('u" + std::to_string(i) +
                        "@test.example', 'u" + std::to_string(i) + "')");
    rig.connection->run("UPDATE mailroom_sinks SET probe_at = now()");
    TestSender(rig.database.conninfo(), relay.url(), {"--once"}).wait();
  }
  CHECK(rig.count("rejected") == 2);
  CHECK(rig.count("deferred") == 3);
  CHECK(value<std::string>(*rig.connection, "SELECT reason FROM mailroom_sinks WHERE failures > 0") ==
        "550 5.7.1 You have run out of credits (to one mail after another)");
}

TEST_CASE("what one sender knows of a refusal of some mails, the next one knows, until it is old") {
  DeliveryRig rig(1);
  const TestRelay relay({.play = [](const RelayMoment& moment) {
    const bool is_refused = moment.step == RelayStep::rcpt && moment.recipient.find("user1@") == 0;
    return is_refused ? RelayAnswer::reply("550 5.7.1 Sender address rejected") : RelayAnswer{};
  }});
  const auto mail_once = [&] {
    rig.due_now();
    rig.connection->run("UPDATE mailroom_sinks SET probe_at = now()");
    TestSender(rig.database.conninfo(), relay.url(), {"--once"}).wait();
  };
  mail_once();
  CHECK(value<int>(*rig.connection, "SELECT attempts FROM mailroom_deliveries WHERE token = 1") == 0);
  rig.connection->run("INSERT INTO accounts (email, login) VALUES ('other@test.example', 'other')");
  mail_once();
  CHECK(rig.count("accepted") == 1);
  mail_once();
  CHECK(value<int>(*rig.connection, "SELECT attempts FROM mailroom_deliveries WHERE token = 1") >= 1);
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM mailroom_sinks WHERE failures > 0") == 0);
}

TEST_CASE("a sender that may probe a relay and has nothing to send leaves that to others") {
  DeliveryRig rig(0);
  const TestRelay relay;
  rig.connection->run(
      "INSERT INTO mailroom_sinks VALUES ('" + relay.url().substr(7) +
      "', 1, now() - interval '1 min', date_trunc('second', now()) - interval '1 min', now() - interval '30 s', 'down')");
  CHECK(TestSender(rig.database.conninfo(), relay.url(), {"--once"}).wait() == 0);
  CHECK(value<bool>(*rig.connection, "SELECT probe_at < now() FROM mailroom_sinks"));
}

}  // namespace mailroom::test::shared_sinks_test
