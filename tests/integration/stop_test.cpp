// `mailroom collect` is asked to stop while it waits for a lock or for its reader. The lock is released only
// after the collector has ended, so a collector that waits for the lock would hang.

#include <csignal>

#include "support/catch.hpp"
#include "support/named_pipe.hpp"
#include "support/test_collector.hpp"

namespace mailroom::test::stop_test {
namespace {

/// A collector that has written a batch to a slow reader, and then waits for the queue's lock to acknowledge
/// the batch.
class HeldUp {
 public:
  HeldUp() : holder(database.connect()) {
    // More than fits into the pipe.
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
  /// Drains the queue with another collector, and returns how often each token was emitted in total.
  std::map<std::int64_t, int> drain() {
    TestCollector other(database, {"--once", "--format", "jsonl"});
    REQUIRE(other.process().wait() == 0);
    return emitted_ids(output + other.output());
  }

  /// True if the queue's lock is held or waited for.
  bool is_there(const std::string& lock) {
    return locks(*connection, "classid = mailroom_lock_class('queue')::oid AND " + lock) > 0;
  }

  TestDatabase database;
  std::unique_ptr<db::Connection> connection = database.connect();
  std::unique_ptr<db::Connection> holder;
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

TEST_CASE("a stop does not wait for the queue's lock, and acknowledges the batch that was written") {
  HeldUp queue;
  CHECK(queue.collector.stop() == 0);
  CHECK(queue.is_locked());
  CHECK(queue.open_batches() == 0);
  CHECK(count(queue.collector.log(), "stopping: waiting for the database; signal again to stop at once") ==
        1);
  insert_accounts(*queue.connection, 5);
  queue.holder->run("COMMIT");
  CHECK(queue.drain() == each(1005, 1));
}

TEST_CASE("a stop while the batch itself is locked loses nothing, and repeats only that batch") {
  HeldUp queue;
  queue.holder->run("SELECT FROM mailroom_batches FOR UPDATE");
  CHECK(queue.collector.stop() == 6);
  CHECK(queue.is_locked());
  CHECK(count(queue.collector.log(), "written but not acknowledged") == 1);
  CHECK(count(queue.collector.log(), "hint: run mailroom status to see which session holds") == 1);
  queue.holder->run("COMMIT");
  CHECK(queue.drain() == each(1000, 2));
}

TEST_CASE("a stop says when it waits for the reader of stdout, and a second signal stops at once") {
  const auto [number, status] = GENERATE(std::pair{SIGINT, 130}, std::pair{SIGTERM, 143});
  TestDatabase database;
  NamedPipe pipe;
  insert_accounts(*database.connect(), 1000, "a-login-that-is-long-enough-to-fill-the-pipe-");
  TestCollector collector(database.conninfo(), {"--format", "jsonl", "--batch-limit", "1000"}, {},
                          pipe.path());
  REQUIRE(eventually([&] { return pipe.is_full(); }));
  collector.process().signal(number);
  CHECK(eventually([&] {
    return count(collector.log(),
                 "stopping: waiting for the reader of stdout; signal again to stop at once") == 1;
  }));
  collector.process().signal(number);
  CHECK(collector.process().wait() == status);
}

}  // namespace mailroom::test::stop_test
