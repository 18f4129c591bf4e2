// Gaps: ids below the cursor that no snapshot has shown. A gap is kept while its transaction may still show
// its ids, and forgotten afterwards.

#include <fmt/format.h>

#include "support/catch.hpp"
#include "support/subprocess.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::gap_test {
namespace {

/// A queue with one collector, which emits and acknowledges all due tokens.
struct Queue : DatabaseRig {
  std::unique_ptr<claim::PgQueueSession> session = attach(database);

  std::size_t drain(int limit = 10) { return test::drain(*session, limit).size(); }

  /// A gap is forgotten only after all older transactions, including those of other tests on the same server.
  bool forgets_all_gaps() {
    return eventually([&] { return drain() == 0 && gaps() == 0; });
  }

  int largest_batch() { return value<int>(*connection, "SELECT max(emitted) FROM mailroom_batches"); }
  std::int64_t gaps() { return value<std::int64_t>(*connection, "SELECT count(*) FROM mailroom_gaps"); }
};

}  // namespace

TEST_CASE("a gap is kept while its transaction runs, and forgotten after a rollback") {
  Queue queue;
  const auto open = begin_insert(queue.database, 3, "open");
  insert_accounts(*queue.connection, 2);
  CHECK(queue.drain() == 2);
  CHECK(queue.gaps() == 1);
  open->run("ROLLBACK");
  CHECK(queue.forgets_all_gaps());
}

TEST_CASE("a gap ends with its last id, whatever unrelated transaction runs") {
  Queue queue;
  const auto unrelated = queue.database.connect();
  unrelated->run("BEGIN");
  unrelated->run("SELECT pg_current_xact_id()");
  // More than there may be before gaps are merged.
  for (int i = 0; i < 50; ++i) {
    const auto open = begin_insert(queue.database, 1, fmt::format("late{}", i));
    insert_accounts(*queue.connection, 1, fmt::format("new{}", i));
    REQUIRE(queue.drain() == 1);
    open->run("COMMIT");
    REQUIRE(queue.drain() == 1);
  }
  CHECK(queue.gaps() == 0);
}

TEST_CASE("gaps without ids are merged like others") {
  Queue queue;
  const auto unrelated = queue.database.connect();
  unrelated->run("BEGIN");
  unrelated->run("SELECT pg_current_xact_id()");
  for (int i = 0; i < 50; ++i) {
    const auto open = begin_insert(queue.database, 1, fmt::format("late{}", i));
    insert_accounts(*queue.connection, 1, fmt::format("new{}", i));
    REQUIRE(queue.drain() == 1);
    open->run("ROLLBACK");
    queue.connection->run("UPDATE mailroom_gaps SET ids = '{}'");
  }
  REQUIRE(queue.drain() == 0);
  unrelated->run("ROLLBACK");
  CHECK(queue.forgets_all_gaps());
}

TEST_CASE("a large transaction that commits late is emitted in batches of the limit") {
  Queue queue;
  const auto open = begin_insert(queue.database, 95, "open");
  insert_accounts(*queue.connection, 2);
  CHECK(queue.drain() == 2);
  open->run("COMMIT");
  insert_accounts(*queue.connection, 20, "new");
  CHECK(queue.drain() == 115);
  CHECK(queue.largest_batch() == 10);
  CHECK(queue.forgets_all_gaps());
}

TEST_CASE("a claim reports how many waiting tokens late ones have displaced from the batch") {
  Queue queue;
  const auto open = begin_insert(queue.database, 9, "open");
  insert_accounts(*queue.connection, 1);
  REQUIRE(queue.drain() == 1);
  const claim::ClaimRequest full{.limit = 10};
  insert_accounts(*queue.connection, 6, "new");
  const auto before = queue.session->claim(full);
  CHECK(before.pending == 6);
  CHECK(before.last == 16);
  open->run("COMMIT");
  // The batch takes five late tokens and five of the six that waited: one is still pending, and four late
  // ones have not been read.
  const auto after = queue.session->claim(full);
  REQUIRE(after.lease);
  CHECK(after.pending == 1);
  CHECK(after.last < before.last);
}

TEST_CASE("with a limit of one, late and new tokens are both emitted") {
  Queue queue;
  const auto open = begin_insert(queue.database, 3, "open");
  insert_accounts(*queue.connection, 2);
  CHECK(queue.drain(1) == 2);
  open->run("COMMIT");
  insert_accounts(*queue.connection, 2, "new");
  CHECK(queue.drain(1) == 5);
  CHECK(queue.largest_batch() == 1);
}

TEST_CASE("a transaction of another database delays only the forgetting of dead gaps, not a delivery") {
  Queue queue;
  // This transaction writes in another database of the cluster, and is older than all that follow.
  TestDatabase elsewhere(TestDatabase::Schema::none);
  const auto foreign = elsewhere.connect();
  foreign->run("CREATE TABLE t (x int)");
  foreign->run("BEGIN");
  foreign->run("INSERT INTO t VALUES (1)");
  for (int i = 0; i < 60; ++i) {
    begin_insert(queue.database, 1, "gone" + std::to_string(i) + "-")->run("ROLLBACK");
    insert_accounts(*queue.connection, 1, "there" + std::to_string(i) + "-");
    CHECK(queue.drain() == 1);
  }
  // All gaps wait for the same transaction, so they were merged into fewer.
  CHECK(queue.gaps() > 0);
  CHECK(queue.gaps() <= 41);
  foreign->run("COMMIT");
  CHECK(queue.forgets_all_gaps());
}

TEST_CASE("late tokens in merged gaps are still emitted") {
  Queue queue;
  const auto oldest = begin_insert(queue.database, 1, "oldest");
  std::vector<std::unique_ptr<db::Connection>> open;
  for (int i = 0; i < 50; ++i) {
    open.push_back(begin_insert(queue.database, 2, "late" + std::to_string(i) + "-"));
    insert_accounts(*queue.connection, 1, "now" + std::to_string(i) + "-");
    CHECK(queue.drain() == 1);
  }
  for (std::size_t i = 0; i < open.size(); ++i)
    open[i]->run(i % 3 == 0 ? "ROLLBACK" : "COMMIT");
  CHECK(queue.drain() == 2 * 33);
  oldest->run("COMMIT");
  CHECK(queue.drain() == 1);
  CHECK(queue.forgets_all_gaps());
}

TEST_CASE("a prepared transaction counts as one that still runs") {
  Queue queue;
  queue.connection->run("ALTER TABLE tokens DISABLE TRIGGER after_token_inserted");
  const auto name = queue.database.name();
  const auto prepared = begin_insert(queue.database, 1, "prepared");
  prepared->run("PREPARE TRANSACTION '" + name + "'");
  insert_accounts(*queue.connection, 1);
  CHECK(queue.drain() == 1);
  CHECK(queue.gaps() == 1);
  queue.connection->run("COMMIT PREPARED '" + name + "'");
  CHECK(queue.drain() == 1);
  CHECK(queue.forgets_all_gaps());
}

TEST_CASE("a gap restored from another cluster blocks nothing") {
  Queue queue;
  queue.connection->run("INSERT INTO mailroom_gaps (ids, horizon) VALUES ('{[1,5)}', '9000000000000')");
  queue.connection->run(
      "INSERT INTO mailroom_batches (queue, ids, collector, emitted_at, cursor, open_from, gap_ids) "
      "SELECT 'mailroom', '{}', 0, now(), 0, 1, array_agg(id) FROM mailroom_gaps");
  insert_accounts(*queue.connection, 1);
  CHECK(queue.drain() >= 1);
  CHECK(queue.forgets_all_gaps());
}

TEST_CASE("a queue is not idle while a transaction may still show a token below its cursor") {
  Queue queue;
  const auto is_idle = [&] {
    return !queue.connection->run("SELECT FROM mailroom_idle_cursor('mailroom')").empty();
  };
  const claim::ClaimRequest routine{.limit = 10, .partial = true, .publish_cursor = true, .routine = true};
  const auto late = begin_insert(queue.database, 1, "late");
  // Its commit notifies.
  CHECK(is_idle());
  insert_accounts(*queue.connection, 1, "early");
  CHECK(queue.drain() == 1);
  queue.session->claim(routine);
  CHECK(queue.gaps() == 1);
  CHECK_FALSE(is_idle());
  late->run("COMMIT");
  CHECK_FALSE(is_idle());
  const auto lease = queue.session->claim(routine).lease;
  REQUIRE(lease);
  queue.session->claim({.publish_cursor = true, .receipt = claim::Receipt{*lease, {.emitted = 1}}});
  queue.session->claim(routine);
  CHECK(is_idle());
}

}  // namespace mailroom::test::gap_test
