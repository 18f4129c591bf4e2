// `mailroom collect` as a process, polling and listening. The poll interval is an hour, so a token that no
// collector notices is not emitted.

#include <atomic>
#include <thread>

#include "support/catch.hpp"
#include "support/named_pipe.hpp"
#include "support/test_collector.hpp"
#include "support/waking.hpp"
#include "support/write_load.hpp"

namespace mailroom::test::waking_collector_test {
namespace {

std::vector<std::string> options(std::vector<std::string> more = {}) {
  std::vector<std::string> all{"--format",        "jsonl", "--batch-limit",   "1000",
                               "--batch-timeout", "50ms",  "--poll-interval", "1h"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

WriteLoad::Options tolerant() {
  return {.prepares = false, .tolerant = true, .pause_ms = 0};
}

/// Prepares an insert that has not notified as `name`, which succeeds once a collector is polling.
bool prepare_silently(db::Connection& connection, const std::string& name) {
  int attempts = 0;
  return eventually([&] { return prepare_insert(connection, name + std::to_string(++attempts)); });
}

void commit_prepared(db::Connection& connection) {
  for (const auto& row :
       connection.run("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"))
    connection.run("COMMIT PREPARED '" + std::string(row[0].c_str()) + "'");
}

bool each_once(db::Connection& connection, const std::string& output) {
  std::map<std::int64_t, int> once;
  for (const auto id : committed_tokens(connection))
    once[id] = 1;
  return emitted_ids(output) == once;
}

/// Inserts accounts at a rate, in transactions of their own, until it is destroyed.
class SteadyLoad {
 public:
  SteadyLoad(const TestDatabase& database, int per_second) : connection_(database.connect()) {
    const auto pause = std::chrono::milliseconds(std::max(1000 / per_second, 10));
    const int each = std::max(per_second * static_cast<int>(pause.count()) / 1000, 1);
    static int loads = 0;
    thread_ = std::thread([this, pause, each, name = "steady" + std::to_string(++loads) + "-"] {
      auto next = std::chrono::steady_clock::now();
      for (int round = 0; !stop_; ++round) {
        insert_accounts(*connection_, each, name + std::to_string(round) + "-");
        std::this_thread::sleep_until(next += pause);
      }
    });
  }
  ~SteadyLoad() {
    stop_ = true;
    thread_.join();
  }
  SteadyLoad(const SteadyLoad&) = delete;
  SteadyLoad& operator=(const SteadyLoad&) = delete;

 private:
  std::unique_ptr<db::Connection> connection_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace

TEST_CASE("a polling collector does not delay that of another queue") {
  TestDatabase database;
  const auto connection = database.connect();
  connection->run("SELECT mailroom_create_queue('copy', 0, '{}', 'token_insert')");
  TestCollector polling(database, options());
  REQUIRE(polling.connected());
  for (const int per_second : {10, 300, 600, 3000}) {
    CAPTURE(per_second);
    if (per_second > 250) {
      // Below the rate at which polling starts it goes on, once it has started.
      SteadyLoad burst(database, 2000);
      REQUIRE(eventually([&] { return somebody_is_polling(*connection); }));
    }
    SteadyLoad load(database, per_second);
    TestCollector other(database, options({"--queue", "copy"}));
    REQUIRE(other.connected());
    // A collector that hears of no token emits few lines, each with many tokens.
    REQUIRE(eventually([&] { return !other.lines().empty(); }));
    const auto before = other.lines().size();
    const auto polled = polling.lines().size();
    CHECK(eventually([&] { return polling.lines().size() >= polled + 20; }));
    CHECK(eventually([&] { return other.lines().size() >= before + 5; }));
    CHECK(other.stop() == 0);
  }
  CHECK(polling.stop() == 0);
}

TEST_CASE("tokens inserted while a collector polls, and committed while it listens, need no notification") {
  TestDatabase database;
  const auto connection = database.connect();
  const auto held = database.connect();
  TestCollector collector(database, options());
  REQUIRE(collector.connected());
  {
    WriteLoad load(database.conninfo(), 4, 1, tolerant());
    REQUIRE(prepare_silently(*connection, "silent"));
    REQUIRE(eventually([&] { return somebody_is_polling(*connection); }));
    held->run("BEGIN");
    insert_accounts(*held, 3, "held");
  }
  REQUIRE(eventually([&] { return !somebody_is_polling(*connection); }));
  held->run("COMMIT");
  REQUIRE(eventually([&] { return each_once(*connection, collector.output()); }));
  commit_prepared(*connection);
  CHECK(eventually([&] { return each_once(*connection, collector.output()); }));
  CHECK(collector.stop() == 0);
}

TEST_CASE("with notify: always every insert notifies, however fast they come") {
  TestDatabase database;
  const auto connection = database.connect();
  TestCollector collector(database, options(), {{"MAILROOM_NOTIFY", "always"}});
  REQUIRE(collector.connected());
  {
    WriteLoad load(database.conninfo(), 4, 1, tolerant());
    for (int i = 0; i < 100; ++i) {
      CHECK_FALSE(prepare_insert(*connection, "loud" + std::to_string(i)));
      CHECK_FALSE(somebody_is_polling(*connection));
    }
  }
  CHECK(eventually([&] { return each_once(*connection, collector.output()); }));
  CHECK(collector.stop() == 0);
}

TEST_CASE("a collector that waits for a slow reader has stopped polling") {
  TestDatabase database;
  const auto connection = database.connect();
  NamedPipe pipe;
  TestCollector collector(database.conninfo(), options(), {}, pipe.path());
  REQUIRE(collector.connected());
  std::string text;
  {
    WriteLoad load(database.conninfo(), 4, 1, tolerant());
    REQUIRE(eventually([&] {
      text += pipe.take(65536);
      return somebody_is_polling(*connection);
    }));
    REQUIRE(eventually([&] { return pipe.is_full(); }));
    REQUIRE(eventually([&] { return !somebody_is_polling(*connection); }));
    CHECK_FALSE(prepare_insert(*connection, "loud"));
  }
  CHECK(eventually([&] {
    text += pipe.take(65536);
    return each_once(*connection, text);
  }));
  CHECK(collector.stop() == 0);
}

TEST_CASE("one of two collectors is polling, and when it stops the other is notified") {
  TestDatabase database;
  const auto connection = database.connect();
  TestCollector first(database, options());
  TestCollector second(database, options());
  REQUIRE(first.connected());
  REQUIRE(second.connected());
  const auto polling_pid = [&] {
    const auto rows = connection->run(
        "SELECT substring(a.application_name FROM '[0-9]+$')::int FROM pg_locks l "
        "JOIN pg_stat_activity a USING (pid) WHERE l.locktype = 'advisory' AND l.classid = 1835100526 "
        "AND a.datname = current_database() AND l.mode = 'ExclusiveLock'");
    return rows.empty() ? 0 : rows[0][0].as<int>();
  };
  WriteLoad load(database.conninfo(), 4, 1, tolerant());
  REQUIRE(prepare_silently(*connection, "silent"));
  int pid = 0;
  REQUIRE(eventually([&] { return (pid = polling_pid()) != 0; }));
  const bool is_first = pid == first.process().pid();
  auto& leaving = is_first ? first : second;
  auto& staying = is_first ? second : first;
  REQUIRE(pid == leaving.process().pid());
  CHECK(leaving.stop() == 0);
  load.stop();
  commit_prepared(*connection);
  CHECK(eventually([&] { return each_once(*connection, first.output() + second.output()); }));
  CHECK(staying.stop() == 0);
}

}  // namespace mailroom::test::waking_collector_test
