// `mailroom collect` as a process, polling and listening. The poll interval is an hour, so a token that no
// collector notices is not emitted.

#include "support/catch.hpp"
#include "support/named_pipe.hpp"
#include "support/test_collector.hpp"
#include "support/waking.hpp"
#include "support/write_load.hpp"

using namespace mailroom;
using namespace mailroom::test;

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
bool prepare_silently(Connection& connection, const std::string& name) {
  int attempts = 0;
  return eventually([&] { return prepare_insert(connection, name + std::to_string(++attempts)); });
}

void commit_prepared(Connection& connection) {
  for (const auto& row :
       connection.run("SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"))
    connection.run("COMMIT PREPARED '" + std::string(row[0].c_str()) + "'");
}

bool each_once(Connection& connection, const std::string& output) {
  std::map<std::int64_t, int> once;
  for (const auto id : committed_tokens(connection))
    once[id] = 1;
  return emitted_ids(output) == once;
}

}  // namespace

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
