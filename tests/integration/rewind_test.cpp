// Rewinds: the cursor moves under the queue's lock.

#include "base/json.hpp"
#include "support/catch.hpp"
#include "support/rewind_rig.hpp"

namespace mailroom::test::rewind_test {

using namespace std::chrono_literals;

TEST_CASE("a cursor moved back emits exactly the tokens above it, once more") {
  RewindRig queue;
  insert_accounts(*queue.connection, 8);
  CHECK(queue.drain() == Ids{1, 2, 3, 4, 5, 6, 7, 8});
  const auto plan = queue.plan(to(5));
  CHECK(plan.cursor_before == 8);
  CHECK(plan.cursor_after == 5);
  CHECK(plan.deliverable.count == 3);
  CHECK(plan.deliverable.emitted_before == 3);
  CHECK(queue.drain().empty());
  CHECK(queue.carry_out(to(5)) == 3);
  CHECK(value<int>(*queue.connection, "SELECT last_seq FROM jobs") == 5);
  insert_accounts(*queue.connection, 1, "new");
  CHECK(queue.drain() == Ids{6, 7, 8, 9});
  CHECK(queue.drain().empty());
}

TEST_CASE("the plan counts tokens by what would happen to them") {
  RewindRig queue;
  insert_accounts(*queue.connection, 6);
  queue.connection->run("UPDATE tokens SET expires_at = 1 WHERE id IN (2, 3)");
  CHECK(queue.drain() == Ids{1, 4, 5, 6});
  queue.connection->run("UPDATE tokens SET consumed_at = 1 WHERE id = 4");
  queue.connection->run("UPDATE accounts SET status = 'suspended' WHERE id IN (3, 5)");
  auto request = to(replay::RewindTarget::Kind::start);
  auto plan = queue.plan(request);
  CHECK(plan.deliverable.count == 2);
  CHECK(plan.expired.count == 2);
  CHECK(plan.consumed.count == 1);
  CHECK(plan.consumed.emitted_before == 1);
  CHECK(plan.wrong_status.count == 1);
  // The third token is expired and its account suspended: an extension alone does not make it due.
  request.extension = 15min;
  plan = queue.plan(request);
  CHECK(plan.revived.count == 1);
  CHECK(plan.expired.count == 1);
  CHECK(plan.replayed() == 3);
  CHECK(queue.carry_out(request) == 3);
  CHECK(queue.drain() == Ids{1, 2, 6});
  CHECK(value<int>(*queue.connection,
                   "SELECT expires_at - extract(epoch FROM now())::bigint FROM tokens "
                   "WHERE id = 2") > 800);
  CHECK(value<int>(*queue.connection, "SELECT expires_at FROM tokens WHERE id = 3") == 1);
}

TEST_CASE(
    "tokens of a batch in flight above the target are emitted again, and its acknowledgement stays valid") {
  RewindRig queue;
  insert_accounts(*queue.connection, 6);
  const auto reply = queue.session->claim({.limit = 4, .partial = true});
  REQUIRE(reply.lease);
  CHECK(queue.carry_out(to(2)) == 2);
  CHECK(value<std::string>(*queue.connection, "SELECT ids FROM mailroom_batches WHERE id = 1") == "{[1,3)}");
  // The collector that claimed the batch has written its tokens; the tokens that were cut are in the next
  // batch.
  CHECK(fetch_ids(*queue.session, *reply.lease) == Ids{1, 2, 3, 4});
  const auto next = queue.session->claim(
      {.limit = 10, .partial = true, .receipt = claim::Receipt{*reply.lease, {.emitted = 4}}});
  REQUIRE(next.lease);
  CHECK(fetch_ids(*queue.session, *next.lease) == Ids{3, 4, 5, 6});
  const auto details = parse_json(
      value<std::string>(*queue.connection, "SELECT details FROM mailroom_operations WHERE kind = 'rewind'"));
  CHECK(details["cut"][0]["ids"] == "{[3,5)}");
}

TEST_CASE("a batch in flight that is cut to nothing is still acknowledged") {
  RewindRig queue;
  insert_accounts(*queue.connection, 3);
  const auto reply = queue.session->claim({.limit = 3, .partial = true});
  REQUIRE(reply.lease);
  CHECK(queue.carry_out(to(replay::RewindTarget::Kind::start)) == 3);
  const auto again = queue.session->claim({.limit = 3, .partial = true});
  REQUIRE(again.lease);
  CHECK(again.lease->batch == reply.lease->batch);
  CHECK(fetch_ids(*queue.session, *again.lease).empty());
  const auto next = queue.session->claim(
      {.limit = 3, .partial = true, .receipt = claim::Receipt{*again.lease, claim::BatchCounts{}}});
  CHECK_FALSE(next.receipt_void);
  REQUIRE(next.lease);
  CHECK(fetch_ids(*queue.session, *next.lease) == Ids{1, 2, 3});
}

TEST_CASE("a late commit below the target is still emitted, and one above it only once") {
  RewindRig queue;
  const auto low = begin_insert(queue.database, 2, "low");
  insert_accounts(*queue.connection, 2, "middle");
  const auto high = begin_insert(queue.database, 2, "high");
  insert_accounts(*queue.connection, 2, "top");
  CHECK(queue.drain() == Ids{3, 4, 7, 8});
  CHECK(queue.carry_out(to(4)) == 2);
  low->run("COMMIT");
  high->run("COMMIT");
  auto ids = queue.drain();
  std::sort(ids.begin(), ids.end());
  CHECK(ids == Ids{1, 2, 5, 6, 7, 8});
  CHECK(queue.drain().empty());
}

TEST_CASE("a cursor moved forward skips the tokens in between, and records it") {
  RewindRig queue;
  insert_accounts(*queue.connection, 5);
  const auto plan = queue.plan(to(replay::RewindTarget::Kind::end));
  CHECK(plan.is_forward());
  CHECK(plan.deliverable.count == 5);
  CHECK(plan.replayed() == 0);
  CHECK(queue.carry_out(to(replay::RewindTarget::Kind::end)) == 0);
  CHECK(queue.drain().empty());
  insert_accounts(*queue.connection, 1, "new");
  CHECK(queue.drain() == Ids{6});
  CHECK(value<int>(*queue.connection, "SELECT details->>'moved_past' FROM mailroom_operations") == 5);
}

TEST_CASE("a time as target means the first token created since then, and never skips waiting tokens") {
  RewindRig queue;
  insert_accounts(*queue.connection, 6);
  queue.connection->run("UPDATE tokens SET created_at = 1000 + id");
  CHECK(queue.drain().size() == 6);
  CHECK(queue.plan(to(replay::RewindTarget::Kind::time, Moment(1004s))).cursor_after == 3);
  CHECK(queue.plan(to(replay::RewindTarget::Kind::time, Moment(500s))).cursor_after == 0);
  CHECK(queue.plan(to(replay::RewindTarget::Kind::time, Moment(2000s))).changes_nothing());
  insert_accounts(*queue.connection, 2, "waiting");
  CHECK(queue.plan(to(replay::RewindTarget::Kind::time, Moment(4102444800s))).changes_nothing());
  // One transaction began early and drew its id late: the target still covers every token created since the
  // time.
  queue.connection->run("UPDATE tokens SET created_at = 1001 WHERE id = 5");
  CHECK(queue.plan(to(replay::RewindTarget::Kind::time, Moment(1004s))).cursor_after == 3);
}

TEST_CASE("more tokens than allowed are refused, even if they were created after the plan") {
  RewindRig queue;
  insert_accounts(*queue.connection, 5);
  CHECK(queue.drain().size() == 5);
  auto request = to(0);
  request.max_replay = 5;
  const auto plan = queue.plan(request);
  insert_accounts(*queue.connection, 1, "meanwhile");
  CHECK(queue.drain().size() == 1);
  CHECK(refusal([&] {
          replay::carry_out_rewind(*queue.connection, request, plan, rewind_author, "token_insert");
        }) == ExitCode::declined);
  CHECK(queue.drain().empty());
  CHECK(value<int>(*queue.connection, "SELECT count(*) FROM mailroom_operations") == 0);
  request.max_replay = 6;
  CHECK(queue.carry_out(request) == 6);
}

TEST_CASE("a target beyond the newest token is refused") {
  RewindRig queue;
  insert_accounts(*queue.connection, 2);
  CHECK(refusal([&] { queue.plan(to(3)); }) == ExitCode::usage);
  CHECK(refusal([&] { queue.connection->run("SELECT mailroom_rewind('mailroom', 3, 10, '{}')"); }) ==
        ExitCode::usage);
  CHECK(refusal([&] { queue.connection->run("SELECT mailroom_rewind('nowhere', 0, 10, '{}')"); }) ==
        ExitCode::configuration);
}

TEST_CASE("a sequence that was set back is fixed by a rewind") {
  RewindRig queue;
  insert_accounts(*queue.connection, 5);
  CHECK(queue.drain().size() == 5);
  queue.connection->run("TRUNCATE accounts, tokens RESTART IDENTITY");
  insert_accounts(*queue.connection, 2, "again");
  CHECK(refusal([&] { queue.drain(); }) == ExitCode::failed);
  CHECK(queue.plan(to(replay::RewindTarget::Kind::end)).replayed() == 0);
  CHECK(queue.carry_out(to(replay::RewindTarget::Kind::start)) == 2);
  CHECK(queue.drain() == Ids{1, 2});
}

TEST_CASE("a rewind is recorded with actor, reason and range, and notifies listeners") {
  RewindRig queue;
  insert_accounts(*queue.connection, 3);
  CHECK(queue.drain().size() == 3);
  const auto listener = queue.database.connect();
  listener->listen("token_insert");
  CHECK(queue.carry_out(to(1)) == 2);
  listener->run("SELECT 1");
  CHECK(listener->take_notifications());
  const auto row = queue.connection->run(
      "SELECT kind, actor, reason, queue, details->>'cursor_before', details->>'cursor_after', "
      "details->>'replayed' FROM mailroom_operations")[0];
  CHECK(std::string(row[0].c_str()) == "rewind");
  CHECK(std::string(row[1].c_str()) == "tester@host");
  CHECK(std::string(row[2].c_str()) == "test");
  CHECK(std::string(row[3].c_str()) == "mailroom");
  CHECK(row[4].as<int>() == 3);
  CHECK(row[5].as<int>() == 1);
  CHECK(row[6].as<int>() == 2);
}

}  // namespace mailroom::test::rewind_test
