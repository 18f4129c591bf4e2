// The log output of long-running commands while the database is unreachable.

#include <csignal>
#include <cstdlib>

#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/named_pipe.hpp"
#include "support/test_collector.hpp"

namespace mailroom::test::outage_test {
namespace {

/// A database that is unreachable for a while.
class Outage {
 public:
  explicit Outage(const TestDatabase& database) : name_(database.name()) {
    admin_.run("ALTER DATABASE " + name_ + " ALLOW_CONNECTIONS false");
    admin_.run("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '" + name_ +
               "'");
  }
  ~Outage() { end(); }
  Outage(const Outage&) = delete;
  Outage& operator=(const Outage&) = delete;

  void end() { admin_.run("ALTER DATABASE " + name_ + " ALLOW_CONNECTIONS true"); }
  /// How often the server has refused a connection.
  int refusals() const {
    return count(read_file(std::string(std::getenv("PGHOST")) + "/server.log"),
                 "database \"" + name_ + "\" is not currently accepting connections");
  }

 private:
  std::string name_;
  db::Connection admin_{"dbname=postgres", "test"};
};

/// A command that runs until it is stopped. Writes to `stdout_path`, or else to a file that output() reads.
struct Running {
  Running(const TestDatabase& database, std::vector<std::string> words, const std::string& stdout_path = {})
      : process(
            [&] {
              words.insert(words.begin(), mailroom_binary);
              return words;
            }(),
            {{"MAILROOM_DATABASE_URL", database.conninfo()}},
            stdout_path.empty() ? (directory.path() / "out").string() : stdout_path,
            directory.path() / "err") {}

  std::string output() const { return read_file(directory.path() / "out"); }
  std::string log() const { return read_file(directory.path() / "err"); }

  TemporaryDirectory directory;
  Subprocess process;
};

}  // namespace

TEST_CASE("a collector and a tail log an outage once, and log when they are connected again") {
  TestDatabase database;
  TestCollector collector(database, {});
  REQUIRE(collector.connected());
  Running tail(database, {"tail", "-f"});
  insert_accounts(*database.connect(), 1);
  REQUIRE(eventually([&] { return count(tail.output(), "\n") >= 1; }));
  Outage outage(database);
  REQUIRE(eventually([&] { return outage.refusals() >= 10; }));
  CHECK(count(collector.log(), "warn ") == 1);
  CHECK(count(tail.log(), "warn ") == 1);
  outage.end();
  REQUIRE(collector.connected(2));
  CHECK(eventually([&] { return count(tail.log(), " connected again\n") == 1; }));
  CHECK(count(collector.log(), " connection lost reason=") == 1);
  CHECK(count(tail.log(), " connection lost reason=") == 1);
  CHECK(collector.stop() == 0);
}

TEST_CASE("a watch in a pipe reports an unreachable database once per interval, as a line or an object") {
  const bool json = GENERATE(false, true);
  TestDatabase database;
  std::vector<std::string> words{"status", "--watch", "100ms"};
  if (json) words.insert(words.end(), {"-o", "json"});
  Running watch(database, words);
  REQUIRE(eventually([&] { return count(watch.output(), "\n") >= 1; }));
  const std::string mark = json ? "\"code\":\"unreachable\"" : " failure findings=unreachable for=";
  {
    Outage outage(database);
    REQUIRE(eventually([&] { return count(watch.output(), mark) >= 3; }));
  }
  const auto lines = count(watch.output(), "\n");
  CHECK(eventually([&] { return count(watch.output(), "\n") > lines + count(watch.output(), mark); }));
  watch.process.signal(SIGTERM);
  CHECK(watch.process.wait() == 0);
}

TEST_CASE("a watch ends like a tail when its reader closes the pipe") {
  TestDatabase database;
  const auto connection = database.connect();
  const std::vector<std::vector<std::string>> commands{
      {"status", "--watch", "100ms"}, {"status", "--watch", "100ms", "-o", "json"}, {"tail", "-f"}};
  for (const auto& words : commands) {
    INFO(words[0] << " " << words.back());
    NamedPipe pipe;
    Running running(database, words, pipe.path());
    CHECK(eventually([&] {
      return value<int>(*connection,
                        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                        "AND state = 'idle' AND application_name LIKE '%:" +
                            std::to_string(running.process.pid()) + "'") == 1;
    }));
    pipe.leave();
    CHECK(running.process.wait() == 0);
    CHECK(running.log().empty());
  }
}

}  // namespace mailroom::test::outage_test
