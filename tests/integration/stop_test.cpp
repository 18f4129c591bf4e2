// `mailroom collect` asked to stop while it waits, for somebody's lock or for its reader. Whoever holds the
// lock lets go of it only when the collector has ended, so that one which waits for it never does.

#include <csignal>

#include "support/catch.hpp"
#include "support/named_pipe.hpp"
#include "support/test_collector.hpp"

using namespace mailroom;
using namespace mailroom::test;

namespace {

/// A collector that has written a batch to a reader who was slow, and then waits for the queue's lock with
/// the acknowledgement of it.
class HeldUp {
 public:
  HeldUp() : holder(database.connect()) {
    // More than the pipe takes.
    insert_accounts(*connection, 1000, "a-login-that-is-long-enough-to-fill-the-pipe-");
    REQUIRE(eventually([&] { return pipe.is_full(); }));
    holder->run("BEGIN");
    holder->run("SELECT mailroom_lock_queue('mailroom')");
    REQUIRE(eventually([&] {
      read();
      return waits_for_lock();
    }));
    REQUIRE(eventually([&] {
      read();
      return emitted_ids(output).size() == 1000;
    }));
  }

  void read() { output += pipe.take(65536); }
  bool waits_for_lock() { return is_there("NOT granted"); }
  bool is_locked() { return is_there("granted"); }
  int open_batches() {
    return value<int>(*connection, "SELECT count(*) FROM mailroom_batches WHERE emitted_at IS NULL");
  }
  /// How often each token went out, with what another collector finds that drains the queue.
  std::map<std::int64_t, int> drain() {
    TestCollector other(database, {"--once", "--format", "jsonl"});
    REQUIRE(other.process().wait() == 0);
    return emitted_ids(output + other.output());
  }

  /// A lock of the queue, or somebody who wants it.
  bool is_there(const std::string& lock) {
    return value<bool>(
        *connection,
        "SELECT EXISTS (SELECT FROM pg_locks WHERE classid = 1835100524 AND database = (SELECT "
        "oid FROM pg_database WHERE datname = current_database()) AND " +
            lock + ")");
  }

  TestDatabase database;
  std::unique_ptr<Connection> connection = database.connect();
  std::unique_ptr<Connection> holder;
  NamedPipe pipe;
  TestCollector collector{database.conninfo(),
                          {"--format", "jsonl", "--batch-limit", "1000", "--batch-timeout", "50ms"},
                          {},
                          pipe.path()};
  std::string output;
};

std::map<std::int64_t, int> each(std::int64_t last, int times) {
  std::map<std::int64_t, int> all;
  for (std::int64_t id = 1; id <= last; ++id)
    all[id] = times;
  return all;
}

}  // namespace

TEST_CASE(
    "a stop while somebody holds the queue's lock waits for nobody, and what was written is acknowledged") {
  HeldUp queue;
  CHECK(queue.collector.stop() == 0);
  CHECK(queue.is_locked());
  CHECK(queue.open_batches() == 0);
  CHECK(count(queue.collector.log(), "stopping: waiting for the database; once more to stop hard") == 1);
  insert_accounts(*queue.connection, 5);
  queue.holder->run("COMMIT");
  CHECK(queue.drain() == each(1005, 1));
}

TEST_CASE("a stop while somebody holds the batch itself loses nothing, and repeats that batch at the most") {
  HeldUp queue;
  queue.holder->run("SELECT FROM mailroom_batches FOR UPDATE");
  CHECK(queue.collector.stop() == 6);
  CHECK(queue.is_locked());
  CHECK(count(queue.collector.log(), "written but not acknowledged") == 1);
  CHECK(count(queue.collector.log(), "hint: mailroom status says who holds") == 1);
  queue.holder->run("COMMIT");
  CHECK(queue.drain() == each(1000, 2));
}

TEST_CASE("a stop says when it waits for the reader of stdout, and a second one does not") {
  const auto [number, status] = GENERATE(std::pair{SIGINT, 130}, std::pair{SIGTERM, 143});
  TestDatabase database;
  NamedPipe pipe;
  insert_accounts(*database.connect(), 1000, "a-login-that-is-long-enough-to-fill-the-pipe-");
  TestCollector collector(database.conninfo(), {"--format", "jsonl", "--batch-limit", "1000"}, {},
                          pipe.path());
  REQUIRE(eventually([&] { return pipe.is_full(); }));
  collector.process().signal(number);
  CHECK(eventually([&] {
    return count(collector.log(), "stopping: waiting for the reader of stdout; once more to stop hard") == 1;
  }));
  collector.process().signal(number);
  CHECK(collector.process().wait() == status);
}
