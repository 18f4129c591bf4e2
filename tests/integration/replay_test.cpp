// Tokens that a selection chooses are emitted again: which of them, how often, and beside what else happens.

#include "base/json.hpp"
#include "replay/resend.hpp"
#include "support/catch.hpp"
#include "support/rewind_rig.hpp"

namespace mailroom::test::replay_test {

using namespace std::chrono_literals;

namespace {

struct ResendRig : RewindRig {
  replay::ResendPlan plan(const replay::ResendRequest& request) {
    return replay::plan_resend(*connection, request);
  }
  std::int64_t resend(const replay::ResendRequest& request, std::int64_t max = 1000) {
    return replay::carry_out_resend(*connection, {request}, max, rewind_author, "token_insert");
  }
};

replay::ResendRequest of_accounts(std::vector<std::int64_t> accounts) {
  replay::ResendRequest request{.queue = "mailroom"};
  request.selection.accounts = std::move(accounts);
  request.asked = request.selection;
  return request;
}

replay::ResendRequest of_tokens(const Ids& tokens) {
  replay::ResendRequest request{.queue = "mailroom", .by_token = true};
  request.selection.tokens = selection::to_id_ranges(tokens);
  return request;
}

replay::ResendRequest of_period(std::int64_t since, std::int64_t until) {
  replay::ResendRequest request{.queue = "mailroom"};
  request.selection.since = Moment(std::chrono::seconds(since));
  request.selection.until = Moment(std::chrono::seconds(until));
  request.asked = request.selection;
  return request;
}

}  // namespace

TEST_CASE("a resend emits only the selected tokens, and the cursor stays") {
  ResendRig queue;
  insert_accounts(*queue.connection, 4);
  queue.connection->run("UPDATE accounts SET status = 'active'");
  queue.connection->run("INSERT INTO tokens (account, action) SELECT id, 'password_recovery' FROM accounts");
  insert_accounts(*queue.connection, 2, "new");
  CHECK(queue.drain() == Ids{5, 6, 7, 8, 9, 10});
  auto request = of_accounts({2, 4, 5});
  request.selection.actions = {"password_recovery"};
  const auto plan = queue.plan(request);
  CHECK(plan.sent == Ids{6, 8});
  CHECK(plan.before.emitted == 2);
  CHECK(queue.resend(request) == 2);
  CHECK(queue.drain() == Ids{6, 8});
  CHECK(queue.drain().empty());
  CHECK(value<int>(*queue.connection, "SELECT cursor FROM mailroom_queue_state('mailroom')") == 10);
  CHECK(value<int>(*queue.connection, "SELECT count(*) FROM mailroom_gaps") == 0);
}

TEST_CASE("a resend says why a token is not sent") {
  ResendRig queue;
  insert_accounts(*queue.connection, 7);
  CHECK(queue.drain().size() == 7);
  queue.connection->run("UPDATE tokens SET consumed_at = created_at WHERE id = 1");
  queue.connection->run("UPDATE tokens SET expires_at = 1 WHERE id = 2");
  queue.connection->run("UPDATE accounts SET status = 'suspended' WHERE id = 3");
  queue.connection->run("INSERT INTO tokens (account, action) VALUES (4, 'activation')");
  const auto plan = queue.plan(of_accounts({1, 2, 3, 4, 5}));
  CHECK(plan.sent == Ids{5});
  CHECK(plan.count(replay::ResendChoice::consumed) == 1);
  CHECK(plan.count(replay::ResendChoice::expired) == 1);
  CHECK(plan.count(replay::ResendChoice::wrong_status) == 1);
  CHECK(plan.count(replay::ResendChoice::replaced) == 1);
  CHECK(plan.count(replay::ResendChoice::waiting) == 1);
  // One that is named itself is sent though a newer one has replaced it.
  CHECK(queue.plan(of_tokens({4})).sent == Ids{4});
  queue.connection->run("UPDATE mailroom_queues SET actions = '{password_recovery}'");
  queue.connection->run(
      "INSERT INTO mailroom_queues (name, actions) VALUES ('mailroom', '{password_recovery}') ON CONFLICT DO NOTHING");
  CHECK(queue.plan(of_accounts({5})).count(replay::ResendChoice::untaken) == 1);
}

TEST_CASE("the plan tells those that were accepted from those that were perhaps, and from all others") {
  ResendRig queue;
  queue.session = attach_sender(queue.database);
  insert_accounts(*queue.connection, 6);
  CHECK(queue.drain().size() == 6);
  queue.connection->run(R"(
INSERT INTO mailroom_deliveries (queue, token, state, batch, accepted_at, unknowns) VALUES
  ('mailroom', 1, 'accepted', 1, clock_timestamp(), 0), ('mailroom', 2, 'rejected', 1, NULL, 0),
  ('mailroom', 3, 'unknown', 1, NULL, 1), ('mailroom', 4, 'deferred', 1, clock_timestamp(), 0))");
  const auto plan = queue.plan(of_accounts({1, 2, 3, 4, 5}));
  CHECK(plan.sent.size() == 5);
  CHECK(plan.before.accepted == 2);
  CHECK(plan.before.maybe == 1);
  CHECK(plan.before.emitted == 1);
}

TEST_CASE("a resend keeps to the batch limit, and two at once emit a token once") {
  ResendRig queue;
  insert_accounts(*queue.connection, 1200);
  CHECK(queue.drain(500).size() == 1200);
  replay::ResendRequest request{.queue = "mailroom"};
  request.selection.actions = {"activation"};
  CHECK(refusal([&] { queue.resend(request); }) == ExitCode::declined);
  CHECK(queue.resend(request, 2000) == 1200);
  CHECK(queue.resend(request, 2000) == 0);
  const auto largest =
      "SELECT max(n) FROM (SELECT sum(upper(g) - lower(g)) AS n FROM mailroom_batches b, "
      "unnest(b.ids) g WHERE b.id > 5 GROUP BY b.id) s";
  auto ids = queue.drain(100);
  CHECK(value<int>(*queue.connection, largest) <= 100);
  std::sort(ids.begin(), ids.end());
  CHECK(ids.size() == 1200);
  CHECK(std::unique(ids.begin(), ids.end()) == ids.end());
  CHECK(value<int>(*queue.connection, "SELECT count(*) FROM mailroom_gaps") == 0);
}

TEST_CASE("a resend leaves a batch in flight alone, and gives expired tokens a new expiry") {
  ResendRig queue;
  insert_accounts(*queue.connection, 5);
  queue.connection->run("UPDATE tokens SET expires_at = 1 WHERE id = 1");
  const auto reply = queue.session->claim({.limit = 3, .partial = true});
  REQUIRE(reply.lease);
  auto request = of_accounts({1, 3, 5});
  request.extension = 60s;
  const auto plan = queue.plan(request);
  CHECK(plan.sent == Ids{1});
  CHECK(plan.count(replay::ResendChoice::waiting) == 2);
  CHECK(plan.revived == 1);
  CHECK(queue.resend(request) == 1);
  CHECK(fetch_ids(*queue.session, *reply.lease) == Ids{2, 3, 4});
  const auto next = queue.session->claim(
      {.limit = 10, .partial = true, .receipt = claim::Receipt{*reply.lease, {.emitted = 3}}});
  REQUIRE(next.lease);
  CHECK(fetch_ids(*queue.session, *next.lease) == Ids{1, 5});
}

TEST_CASE("a resend of a period emits tokens created in it, and records it") {
  ResendRig queue;
  insert_accounts(*queue.connection, 8);
  CHECK(queue.drain().size() == 8);
  // Ids follow time only roughly: 5 was drawn after 4, by a transaction that began before the end.
  queue.connection->run(
      "UPDATE tokens SET created_at = CASE id WHEN 1 THEN 900 WHEN 2 THEN 1000 WHEN 3 THEN 1599 WHEN 4 THEN "
      "1600 WHEN 5 THEN 1598 ELSE 2000 END");
  const auto request = of_period(1000, 1600);
  CHECK(queue.plan(request).sent == Ids{2, 3, 5});
  CHECK(queue.resend(request) == 3);
  CHECK(queue.drain() == Ids{2, 3, 5});
  CHECK(queue.drain().empty());
  CHECK(value<int>(*queue.connection, "SELECT cursor FROM mailroom_queue_state('mailroom')") == 8);
  const auto details = parse_json(
      value<std::string>(*queue.connection, "SELECT details FROM mailroom_operations WHERE kind = 'replay'"));
  CHECK(details["until"] == "1970-01-01T00:26:40Z");
  CHECK(details["ids"] == "{[2,4),[5,6)}");
}

TEST_CASE("a token that got another outcome since outcomes chose it is not sent") {
  ResendRig queue;
  insert_accounts(*queue.connection, 2);
  CHECK(queue.drain().size() == 2);
  queue.connection->run(
      "INSERT INTO mailroom_deliveries (queue, token, state, batch) SELECT 'mailroom', id, 'rejected', 1 FROM tokens");
  auto request = of_tokens({1, 2});
  request.chosen_at = replay::time_of_choice(*queue.connection);
  CHECK(queue.plan(request).sent == Ids{1, 2});
  queue.connection->run(
      "UPDATE mailroom_deliveries SET state = 'accepted', last_at = clock_timestamp() WHERE token = 1");
  CHECK(queue.plan(request).sent == Ids{2});
}

}  // namespace mailroom::test::replay_test
