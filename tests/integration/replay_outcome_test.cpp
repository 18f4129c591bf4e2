// Replays narrowed to an outcome: dead letters of `mailroom send` are mailed again.

#include <nlohmann/json.hpp>
#include <set>

#include "support/catch.hpp"
#include "support/delivery_rig.hpp"
#include "support/operator_rig.hpp"
#include "support/rewind_rig.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::replay_outcome_test {

using namespace std::chrono_literals;

namespace {

RewindRequest with_outcome(const std::string& outcome) {
  auto request = to(0);
  request.filter.outcome = outcome;
  return request;
}

/// Accounts whose tokens have been mailed, through a relay that answers as each test says.
struct ReplayRig : DeliveryRig {
  using DeliveryRig::DeliveryRig;

  void send(const TestRelay& relay, const std::map<std::string, std::string>& environment = {}) {
    TestSender sender(database.conninfo(), relay.url(), {"--once"}, environment);
    const int status = sender.wait();
    INFO(sender.log());
    CHECK(status == 0);
  }
  RewindPlan plan(const RewindRequest& request) { return plan_rewind(*connection, request); }
  std::int64_t carry_out(const RewindRequest& request) { return test::carry_out(*connection, request); }
};

std::multiset<std::int64_t> mailed(const TestRelay& relay) {
  std::multiset<std::int64_t> tokens;
  for (const auto& mail : relay.taken())
    tokens.insert(token_id_of(mail));
  return tokens;
}

/// A relay that refuses recipients for good: user2 and user3.
TestRelay::Options refusing_two() {
  return {.play = [](const RelayMoment& moment) {
    const bool is_refused = moment.step == RelayStep::rcpt &&
                            (moment.recipient.find("user2@") == 0 || moment.recipient.find("user3@") == 0);
    return is_refused ? RelayAnswer::reply("550 5.7.1 relaying denied") : RelayAnswer{};
  }};
}

/// A relay that closes each connection instead of answering the end of a mail.
TestRelay::Options silent_at_end() {
  return {.play = TestRelay::at(RelayStep::end, RelayAnswer::nothing(RelayAnswer::Then::close))};
}

}  // namespace

TEST_CASE("a replay of rejected mails mails them again, and no others", "[outcome]") {
  ReplayRig rig(4);
  rig.send(TestRelay(refusing_two()));
  CHECK(rig.deliveries() == "1 accepted 1, 2 rejected 1, 3 rejected 1, 4 accepted 1");
  const auto plan = rig.plan(with_outcome("rejected"));
  CHECK(plan.narrowed);
  CHECK(plan.cursor_after == plan.cursor_before);
  CHECK(plan.deliverable.count == 2);
  CHECK(rig.plan(with_outcome("unknown")).changes_nothing());
  auto narrower = with_outcome("rejected");
  narrower.filter.accounts = {1, 3};
  CHECK(rig.plan(narrower).replayed() == 1);
  narrower.filter.action = "password_recovery";
  CHECK(rig.plan(narrower).replayed() == 0);
  auto of_another = with_outcome("rejected");
  rig.connection->run("INSERT INTO jobs (job_type, last_seq) VALUES ('second', 4)");
  of_another.queue = "second";
  CHECK(rig.plan(of_another).replayed() == 0);

  CHECK(rig.carry_out(with_outcome("rejected")) == 2);
  const auto details = nlohmann::json::parse(
      value<std::string>(*rig.connection, "SELECT details FROM mailroom_operations WHERE kind = 'replay'"));
  CHECK(details["outcome"] == "rejected");
  CHECK(details["ids"] == "{[2,4)}");
  TestRelay relay;
  rig.send(relay);
  CHECK(mailed(relay) == std::multiset<std::int64_t>{2, 3});
  CHECK(rig.deliveries() == "1 accepted 1, 2 accepted 2, 3 accepted 2, 4 accepted 1");
  CHECK(rig.plan(with_outcome("rejected")).changes_nothing());
}

TEST_CASE("a replay of unknown mails mails them again, whatever when_unknown says", "[outcome]") {
  const std::string policy = GENERATE("resend", "hold");
  CAPTURE(policy);
  const std::map<std::string, std::string> environment{{"MAILROOM_SEND_WHEN_UNKNOWN", policy}};
  ReplayRig rig(1);
  const TestRelay silent(silent_at_end());
  rig.send(silent, environment);
  rig.connection->run("UPDATE mailroom_deliveries SET not_before = '-infinity' WHERE not_before IS NOT NULL");
  rig.send(silent, environment);
  REQUIRE(rig.deliveries() == (policy == "hold" ? "1 unknown 1" : "1 unknown 2"));
  CHECK(rig.carry_out(with_outcome("unknown")) == 1);
  const TestRelay relay;
  rig.send(relay, environment);
  CHECK(mailed(relay) == std::multiset<std::int64_t>{1});
  CHECK(value<std::string>(*rig.connection, "SELECT state FROM mailroom_deliveries") == "accepted");
}

TEST_CASE("a replay of expired mails includes tokens that expired before a sender took them", "[outcome]") {
  ReplayRig rig(6);
  // 1 is deferred until its link is about to expire, 2 is mailed, 3 to 5 expire before they are claimed.
  rig.connection->run("UPDATE tokens SET expires_at = created_at + CASE id WHEN 1 THEN 62 ELSE 900 END");
  rig.connection->run("UPDATE tokens SET expires_at = created_at - 1 WHERE id BETWEEN 3 AND 5");
  rig.connection->run("UPDATE tokens SET consumed_at = created_at WHERE id = 5");
  rig.send(TestRelay({.play = [](const RelayMoment& moment) {
    const bool is_first = moment.step == RelayStep::rcpt && moment.recipient.find("user1@") == 0;
    return is_first ? RelayAnswer::reply("451 4.7.1 later") : RelayAnswer{};
  }}));
  REQUIRE(rig.deliveries() == "1 expired 1, 2 accepted 1, 6 accepted 1");
  rig.connection->run("UPDATE tokens SET expires_at = created_at - 1 WHERE id IN (1, 2)");
  auto request = with_outcome("expired");
  CHECK(rig.plan(request).expired.count == 3);
  CHECK(rig.plan(request).changes_nothing());
  request.extension = 900s;
  const auto plan = rig.plan(request);
  CHECK(plan.revived.count == 3);
  CHECK(plan.revived.emitted_before == 0);
  request.max_replay = 2;
  CHECK(refusal([&] { rig.carry_out(request); }) == ExitCode::declined);
  request.max_replay = 3;
  CHECK(rig.carry_out(request) == 3);
  CHECK(rig.carry_out(request) == 0);
  const TestRelay relay;
  rig.send(relay);
  CHECK(mailed(relay) == std::multiset<std::int64_t>{1, 3, 4});
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM tokens WHERE expires_at > created_at") == 4);
}

TEST_CASE("a token that is being mailed again has no outcome, so two replays mail it once", "[outcome]") {
  RewindRig queue;
  queue.session = attach_sender(queue.database);
  insert_accounts(*queue.connection, 3);
  queue.drain();
  queue.connection->run(
      "INSERT INTO mailroom_deliveries (queue, token, state, batch) SELECT 'mailroom', id, 'rejected', 1 FROM tokens");
  CHECK(queue.carry_out(with_outcome("rejected")) == 3);
  // In a gap.
  CHECK(queue.plan(with_outcome("rejected")).changes_nothing());
  const auto reply = queue.session->claim({.limit = 2, .partial = true});
  REQUIRE(reply.lease);
  CHECK(fetch_ids(*queue.session, *reply.lease) == Ids{1, 2});
  // In a batch in flight, the last of them still in a gap.
  CHECK(queue.plan(with_outcome("rejected")).changes_nothing());
  CHECK(queue.carry_out(with_outcome("rejected")) == 0);
  CHECK(value<std::string>(*queue.connection, "SELECT ids FROM mailroom_batches WHERE emitted_at IS NULL") ==
        "{[1,3)}");
}

TEST_CASE("the plan of a rewind forward says that deferred tokens wait", "[outcome]") {
  ReplayRig rig(3);
  rig.send(TestRelay({.play = TestRelay::at(RelayStep::rcpt, RelayAnswer::reply("451 4.7.1 later"))}));
  const OperatorRig person(rig.database);
  const std::string note =
      "3 deferred tokens wait for another attempt, and are not skipped: they are below the cursor.";
  // Also where the cursor is at the end already.
  CHECK(person.mailroom({"rewind-cursor", "--to-end"}).output.find(note) != std::string::npos);
  insert_accounts(*rig.connection, 1, "new");
  const auto text = person.mailroom({"rewind-cursor", "--to-end", "--yes"});
  CHECK(text.status == 0);
  CHECK(text.output.find("1 token that could be emitted would be skipped for good.\n" + note) !=
        std::string::npos);
  CHECK(value<std::string>(*rig.connection,
                           "SELECT string_agg(state, ' ') FROM mailroom_deliveries WHERE not_before "
                           "IS NOT NULL") == "deferred deferred deferred");
  const auto json = person.mailroom({"rewind-cursor", "--to-end", "--dry-run", "-o", "json"});
  CHECK(nlohmann::json::parse(json.output)["deferred"] == 3);
  // A rewind back takes them, a narrowed replay does not concern them.
  CHECK(rig.plan(to(0)).deferred == 0);
  CHECK(rig.plan(with_outcome("rejected")).deferred == 0);
}

}  // namespace mailroom::test::replay_outcome_test
