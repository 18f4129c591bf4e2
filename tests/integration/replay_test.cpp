// Replays narrowed to an action or an account: single tokens are emitted again.

#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/rewind_rig.hpp"

namespace mailroom::test::replay_test {

using namespace std::chrono_literals;

TEST_CASE("a narrowed replay emits only the matching tokens, and the cursor stays") {
  RewindRig queue;
  insert_accounts(*queue.connection, 4);
  queue.connection->run("UPDATE accounts SET status = 'active'");
  queue.connection->run("INSERT INTO tokens (account, action) SELECT id, 'password_recovery' FROM accounts");
  insert_accounts(*queue.connection, 2, "new");
  CHECK(queue.drain() == Ids{5, 6, 7, 8, 9, 10});
  auto request = to(0);
  request.filter.action = "password_recovery";
  request.filter.accounts = {2, 4, 5};
  const auto plan = queue.plan(request);
  CHECK(plan.narrowed);
  CHECK(plan.cursor_after == plan.cursor_before);
  CHECK(plan.replayed() == 2);
  CHECK(queue.carry_out(request) == 2);
  CHECK(queue.drain() == Ids{6, 8});
  CHECK(queue.drain().empty());
  CHECK(value<int>(*queue.connection, "SELECT cursor FROM mailroom_queue_state('mailroom')") == 10);
  CHECK(value<int>(*queue.connection, "SELECT count(*) FROM mailroom_gaps") == 0);
}

TEST_CASE("a narrowed replay keeps to the batch limit, and two requests at once emit it once") {
  RewindRig queue;
  insert_accounts(*queue.connection, 1200);
  CHECK(queue.drain(500).size() == 1200);
  auto request = to(0);
  request.filter.action = "activation";
  request.max_replay = 2000;
  CHECK(queue.carry_out(request) == 1200);
  CHECK(queue.carry_out(request) == 0);
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

TEST_CASE("a narrowed replay cuts tokens from a batch in flight, and revives expired ones") {
  RewindRig queue;
  insert_accounts(*queue.connection, 4);
  queue.connection->run("UPDATE tokens SET expires_at = 1 WHERE id = 1");
  const auto reply = queue.session->claim({.limit = 3, .partial = true});
  REQUIRE(reply.lease);
  auto request = to(0);
  request.filter.accounts = {1, 3};
  request.extension = 60s;
  CHECK(queue.carry_out(request) == 2);
  const auto again = queue.session->claim({.limit = 3, .partial = true});
  REQUIRE(again.lease);
  CHECK(fetch_ids(*queue.session, *again.lease) == Ids{2, 4});
  const auto next =
      queue.session->claim({.limit = 10, .partial = true, .receipt = Receipt{*again.lease, {.emitted = 2}}});
  REQUIRE(next.lease);
  CHECK(fetch_ids(*queue.session, *next.lease) == Ids{1, 3});
}

TEST_CASE("a narrowed replay ahead of the cursor is refused") {
  RewindRig queue;
  insert_accounts(*queue.connection, 2);
  auto request = to(RewindTarget::Kind::end);
  request.filter.action = "activation";
  CHECK(refusal([&] { queue.plan(request); }) == ExitCode::usage);
}

TEST_CASE("a replay with an end emits only tokens created before that time") {
  RewindRig queue;
  insert_accounts(*queue.connection, 8);
  CHECK(queue.drain().size() == 8);
  // Ids follow time only roughly: 5 was drawn after 4, by a transaction that began before the end.
  queue.connection->run(
      "UPDATE tokens SET created_at = CASE id WHEN 1 THEN 900 WHEN 2 THEN 1000 WHEN 3 THEN 1599 WHEN 4 THEN "
      "1600 "
      "WHEN 5 THEN 1598 ELSE 2000 END");
  auto request = to(RewindTarget::Kind::time, Moment(1000s));
  request.filter.until = Moment(1600s);
  const auto plan = queue.plan(request);
  CHECK(plan.narrowed);
  CHECK(plan.cursor_after == 8);
  CHECK(plan.range_from == 1);
  CHECK(plan.range_to == 5);
  CHECK(plan.deliverable.count == 3);
  CHECK(plan.deliverable.emitted_before == 3);
  CHECK(queue.carry_out(request) == 3);
  CHECK(queue.drain() == Ids{2, 3, 5});
  CHECK(queue.drain().empty());
  CHECK(value<int>(*queue.connection, "SELECT cursor FROM mailroom_queue_state('mailroom')") == 8);
  const auto details = nlohmann::json::parse(
      value<std::string>(*queue.connection, "SELECT details FROM mailroom_operations WHERE kind = 'replay'"));
  CHECK(details["until"] == "1970-01-01T00:26:40Z");
  CHECK(details["ids"] == "{[2,4),[5,6)}");
}

TEST_CASE("an end can be combined with every start, with a filter, an extension and a limit") {
  RewindRig queue;
  insert_accounts(*queue.connection, 6);
  CHECK(queue.drain().size() == 6);
  queue.connection->run(
      "UPDATE tokens SET created_at = 1000 + id, expires_at = CASE WHEN id < 5 THEN 1 ELSE expires_at END");
  auto request = to(1);
  request.filter.until = Moment(1006s);
  request.filter.accounts = {1, 2, 4, 5, 6};
  request.extension = 60s;
  request.max_replay = 2;
  auto plan = queue.plan(request);
  CHECK(plan.revived.count == 2);
  CHECK(plan.deliverable.count == 1);
  CHECK(refusal([&] { queue.carry_out(request); }) == ExitCode::declined);
  CHECK(value<int>(*queue.connection, "SELECT count(*) FROM tokens WHERE expires_at > 1") == 2);
  request.max_replay = 3;
  CHECK(queue.carry_out(request) == 3);
  CHECK(queue.drain() == Ids{2, 4, 5});
  request.target = {RewindTarget::Kind::start};
  request.max_replay = 4;
  CHECK(queue.carry_out(request) == 4);
  CHECK(queue.drain() == Ids{1, 2, 4, 5});
}

TEST_CASE("an end before all tokens or before the start emits nothing, and none is possible ahead") {
  RewindRig queue;
  insert_accounts(*queue.connection, 3);
  CHECK(queue.drain().size() == 3);
  auto request = to(1);
  request.filter.until = Moment(1000s);
  auto plan = queue.plan(request);
  CHECK(plan.changes_nothing());
  CHECK(plan.range_to == plan.range_from);
  request.target = {.kind = RewindTarget::Kind::time, .time = Moment(1000s)};
  CHECK(queue.plan(request).changes_nothing());
  request = to(RewindTarget::Kind::end);
  request.filter.until = Moment(1000s);
  insert_accounts(*queue.connection, 1, "new");
  CHECK(refusal([&] { queue.plan(request); }) == ExitCode::usage);
}

}  // namespace mailroom::test::replay_test
