// Tokens of an outcome are sent again: dead letters of `mailroom send` are mailed.

#include <set>

#include "base/json.hpp"
#include "reconcile/reconciliation.hpp"
#include "replay/resend.hpp"
#include "support/catch.hpp"
#include "support/delivery_rig.hpp"
#include "support/operator_rig.hpp"
#include "support/rewind_rig.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::replay_outcome_test {

using namespace std::chrono_literals;

namespace {

/// The tokens of `queue` that have this outcome now.
replay::ResendRequest with_outcome(db::Connection& connection, fate::Outcome outcome,
                                   selection::Selection selection = {},
                                   const std::string& queue = "mailroom") {
  selection.outcomes = {outcome};
  return {.queue = queue,
          .selection = reconcile::resolve_outcomes(connection, queue, selection),
          .asked = selection,
          .chosen_at = replay::time_of_choice(connection)};
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
  replay::ResendPlan plan(fate::Outcome outcome, const selection::Selection& selection = {}) {
    return replay::plan_resend(*connection, with_outcome(*connection, outcome, selection));
  }
  std::int64_t resend(const replay::ResendRequest& request, std::int64_t max = 1000) {
    return replay::carry_out_resend(*connection, {request}, max, rewind_author, "token_insert");
  }
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
  const auto plan = rig.plan(fate::Outcome::rejected);
  CHECK(plan.sent == Ids{2, 3});
  CHECK(plan.before.accepted + plan.before.maybe + plan.before.emitted == 0);
  CHECK(rig.plan(fate::Outcome::unknown).sent.empty());
  CHECK(rig.plan(fate::Outcome::rejected, {.accounts = {1, 3}}).sent == Ids{3});
  CHECK(rig.plan(fate::Outcome::rejected, {.actions = {"password_recovery"}}).sent.empty());
  CHECK(rig.plan(fate::Outcome::rejected, {.codes = {{.first = 550, .last = 550}}}).sent.size() == 2);
  rig.connection->run("INSERT INTO jobs (job_type, last_seq) VALUES ('second', 0)");
  CHECK(replay::plan_resend(*rig.connection,
                            with_outcome(*rig.connection, fate::Outcome::rejected, {}, "second"))
            .sent.empty());

  CHECK(rig.resend(with_outcome(*rig.connection, fate::Outcome::rejected)) == 2);
  const auto details = parse_json(
      value<std::string>(*rig.connection, "SELECT details FROM mailroom_operations WHERE kind = 'replay'"));
  CHECK(details["outcomes"] == nlohmann::json{"rejected"});
  CHECK(details["ids"] == "{[2,4)}");
  TestRelay relay;
  rig.send(relay);
  CHECK(mailed(relay) == std::multiset<std::int64_t>{2, 3});
  CHECK(rig.deliveries() == "1 accepted 1, 2 accepted 2, 3 accepted 2, 4 accepted 1");
  CHECK(rig.plan(fate::Outcome::rejected).sent.empty());
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
  CHECK(rig.plan(fate::Outcome::unknown).before.maybe == 1);
  CHECK(rig.resend(with_outcome(*rig.connection, fate::Outcome::unknown)) == 1);
  const TestRelay relay;
  rig.send(relay, environment);
  CHECK(mailed(relay) == std::multiset<std::int64_t>{1});
  CHECK(value<std::string>(*rig.connection, "SELECT state FROM mailroom_deliveries") == "accepted");
}

TEST_CASE("a replay of expired mails includes tokens that expired before a sender took them", "[outcome]") {
  ReplayRig rig(6);
  // 1 is deferred until its link is about to expire, 2 is mailed, 3 to 5 expire before they are claimed.
  rig.connection->run(
      "UPDATE tokens SET created_at = created_at - left_off, expires_at = created_at - left_off + 900 "
      "FROM (SELECT id AS of, CASE id WHEN 1 THEN 838 ELSE 0 END AS left_off FROM tokens) l WHERE id = l.of");
  rig.connection->run("UPDATE tokens SET expires_at = created_at - 1 WHERE id BETWEEN 3 AND 5");
  rig.connection->run("UPDATE tokens SET consumed_at = created_at WHERE id = 5");
  rig.send(TestRelay({.play = [](const RelayMoment& moment) {
    const bool is_first = moment.step == RelayStep::rcpt && moment.recipient.find("user1@") == 0;
    return is_first ? RelayAnswer::reply("451 4.7.1 later") : RelayAnswer{};
  }}));
  REQUIRE(rig.deliveries() == "1 expired 1, 2 accepted 1, 6 accepted 1");
  rig.connection->run("UPDATE tokens SET expires_at = created_at - 1 WHERE id IN (1, 2)");
  auto request = with_outcome(*rig.connection, fate::Outcome::expired);
  CHECK(replay::plan_resend(*rig.connection, request).count(replay::ResendChoice::expired) == 3);
  CHECK(replay::plan_resend(*rig.connection, request).sent.empty());
  request.extension = 900s;
  const auto plan = replay::plan_resend(*rig.connection, request);
  CHECK(plan.revived == 3);
  CHECK(plan.before.accepted + plan.before.emitted == 0);
  CHECK(refusal([&] { rig.resend(request, 2); }) == ExitCode::declined);
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM tokens WHERE expires_at > created_at") == 1);
  CHECK(rig.resend(request, 3) == 3);
  CHECK(rig.resend(request, 3) == 0);
  const TestRelay relay;
  rig.send(relay);
  CHECK(mailed(relay) == std::multiset<std::int64_t>{1, 3, 4});
  CHECK(value<int>(*rig.connection, "SELECT count(*) FROM tokens WHERE expires_at > created_at") == 4);
}

TEST_CASE("a token that is being mailed again waits, so two resends mail it once", "[outcome]") {
  RewindRig queue;
  queue.session = attach_sender(queue.database);
  insert_accounts(*queue.connection, 3);
  queue.drain();
  queue.connection->run(
      "INSERT INTO mailroom_deliveries (queue, token, state, batch) SELECT 'mailroom', id, 'rejected', 1 FROM tokens");
  const auto request = with_outcome(*queue.connection, fate::Outcome::rejected);
  const auto resend = [&] {
    return replay::carry_out_resend(*queue.connection, {request}, 1000, rewind_author, "token_insert");
  };
  CHECK(resend() == 3);
  // In a gap.
  CHECK(replay::plan_resend(*queue.connection, request).count(replay::ResendChoice::waiting) == 3);
  const auto reply = queue.session->claim({.limit = 2, .partial = true});
  REQUIRE(reply.lease);
  CHECK(fetch_ids(*queue.session, *reply.lease) == Ids{1, 2});
  // In a batch in flight, the last of them still in a gap.
  CHECK(replay::plan_resend(*queue.connection, request).count(replay::ResendChoice::waiting) == 3);
  CHECK(resend() == 0);
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
  CHECK(parse_json(json.output)["deferred"] == 3);
  // A rewind back takes them.
  CHECK(replay::plan_rewind(*rig.connection, to(0)).deferred == 0);
}

}  // namespace mailroom::test::replay_outcome_test
