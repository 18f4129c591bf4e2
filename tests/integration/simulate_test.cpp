// `mailroom simulate` when connections are lost, and when it is stopped early.

#include <atomic>
#include <csignal>
#include <thread>

#include "base/json.hpp"
#include "support/build_paths.hpp"
#include "support/catch.hpp"
#include "support/finished_run.hpp"
#include "support/test_collector.hpp"

namespace mailroom::test::simulate_test {
namespace {

class TestSimulation {
 public:
  TestSimulation(const TestDatabase& database, std::vector<std::string> options)
      : process_(
            [&] {
              options.insert(options.begin(), {mailroom_binary, "simulate"});
              return options;
            }(),
            {{"MAILROOM_DATABASE_URL", database.conninfo()}}, directory_.path() / "out",
            directory_.path() / "err") {}

  Subprocess& process() { return process_; }
  std::string output() const { return read_file(directory_.path() / "out"); }
  std::string errors() const { return read_file(directory_.path() / "err"); }

 private:
  TemporaryDirectory directory_;
  Subprocess process_;
};

/// Terminates one session of the simulation after the other, at any point, until it is destroyed. The pauses
/// grow, so that the simulation makes progress even if connecting takes longer than the first pauses.
class Saboteur {
 public:
  explicit Saboteur(const TestDatabase& database)
      : connection_(database.connect()), thread_([this] { work(); }) {}
  ~Saboteur() { stop(); }
  Saboteur(const Saboteur&) = delete;
  Saboteur& operator=(const Saboteur&) = delete;

  bool has_ended(int sessions) {
    return eventually([&] { return ended_ >= sessions; });
  }
  int stop() {
    stopped_ = true;
    if (thread_.joinable()) thread_.join();
    return ended_;
  }

 private:
  void work() {
    for (std::chrono::duration<double, std::milli> pause(30); !stopped_; pause *= 1.03) {
      ended_ += static_cast<int>(
          connection_
              ->run(
                  "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
                  "AND application_name LIKE 'mailroom simulate %' AND query <> '' ORDER BY random() LIMIT 1")
              .size());
      for (const auto end = std::chrono::steady_clock::now() + pause;
           !stopped_ && std::chrono::steady_clock::now() < end;) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
  }

  std::unique_ptr<Connection> connection_;
  std::atomic<bool> stopped_{false};
  std::atomic<int> ended_{0};
  std::thread thread_;
};

std::int64_t count_of(Connection& connection, const std::string& rows) {
  return value<std::int64_t>(connection, "SELECT count(*) FROM " + rows);
}

}  // namespace

TEST_CASE("a simulation whose connections are terminated repeatedly finishes, and does everything once") {
  TestDatabase database;
  const auto connection = database.connect();
  TestSimulation simulation(
      database, {"--accounts", "500", "--rate", "1500", "--connections", "4", "--delay", "1ms", "--activate",
                 "100", "--recover", "100", "--suspend", "40", "--seed", "7", "-o", "json"});
  REQUIRE(eventually([&] { return count_of(*connection, "accounts") > 0; }));
  Saboteur saboteur(database);
  const int status = simulation.process().wait(std::chrono::seconds(120));
  const int ended = saboteur.stop();
  INFO(simulation.errors());
  REQUIRE(status == 0);
  CHECK(ended > 3);
  const auto told = parse_json(simulation.output());
  CHECK(told.at("accounts") == 500);
  CHECK(told.at("activated") == 500);
  CHECK(told.at("recovered") == 500);
  CHECK(told.at("tokens") == 1000);
  CHECK(count_of(*connection, "accounts") == 500);
  CHECK(count_of(*connection, "tokens") == 1000);
  CHECK(count_of(*connection, "tokens WHERE consumed_at IS NULL") == 0);
  CHECK(count_of(*connection, "accounts WHERE status = 'suspended'") == told.at("suspended"));
  CHECK(count(simulation.errors(), "connection lost, connecting again reason=") >= 1);
}

TEST_CASE("a simulation that waits for a collector keeps polling over lost connections") {
  TestDatabase database;
  TestSimulation simulation(database, {"--accounts", "50", "--activate", "100", "-o", "json"});
  REQUIRE(eventually([&] { return count_of(*database.connect(), "tokens") == 50; }));
  {
    Saboteur saboteur(database);
    REQUIRE(eventually(
        [&] { return count(simulation.errors(), "connection lost, connecting again reason=") >= 1; }));
  }
  TestCollector collector(database, {});
  CHECK(simulation.process().wait() == 0);
  CHECK(parse_json(simulation.output()).at("activated") == 50);
  CHECK(collector.stop() == 0);
}

TEST_CASE("the clean-up continues over lost connections too") {
  TestDatabase database;
  const auto connection = database.connect();
  REQUIRE(TestSimulation(database, {"--accounts", "20000"}).process().wait() == 0);
  TestSimulation cleaning(database, {"--clean-up"});
  REQUIRE(eventually([&] { return count_of(*connection, "accounts") < 20000; }));
  {
    Saboteur saboteur(database);
    REQUIRE(saboteur.has_ended(3));
  }
  const int status = cleaning.process().wait();
  INFO(cleaning.errors());
  CHECK(status == 0);
  CHECK(count_of(*connection, "accounts") == 0);
}

TEST_CASE(
    "a simulation that is stopped exits with its signal's status, and prints how to remove its accounts") {
  const auto [number, status] = GENERATE(std::pair{SIGINT, 130}, std::pair{SIGTERM, 143});
  TestDatabase database;
  const auto connection = database.connect();
  TestSimulation simulation(database, {"--accounts", "100000", "--rate", "100", "--seed", "42"});
  REQUIRE(eventually([&] { return count_of(*connection, "accounts") > 0; }));
  simulation.process().signal(number);
  CHECK(simulation.process().wait() == status);
  CHECK(count(simulation.output(), "stopped by a signal before the end\n") == 1);
  const auto errors = simulation.errors();
  INFO(errors);
  CHECK(count(errors, "error: stopped by " + std::string(number == SIGINT ? "SIGINT" : "SIGTERM")) == 1);
  const std::string mark = "to remove what it created: mailroom ";
  const auto at = errors.find(mark);
  REQUIRE(at != std::string::npos);
  const auto command = errors.substr(at + mark.size(), errors.find('\n', at) - at - mark.size());
  CHECK(command == "simulate --clean-up --seed 42");
  const auto cleaning = run_to_end({"/bin/sh", "-c", std::string("exec ") + mailroom_binary + " " + command},
                                   {{"MAILROOM_DATABASE_URL", database.conninfo()}});
  CHECK(cleaning.status == 0);
  CHECK(count_of(*connection, "accounts") == 0);
}

TEST_CASE("a simulation that is stopped while the server is down ends at once") {
  TestDatabase database;
  const auto connection = database.connect();
  TestSimulation simulation(database, {"--accounts", "100000", "--rate", "100"});
  REQUIRE(eventually([&] { return count_of(*connection, "accounts") > 0; }));
  Connection admin("dbname=postgres", "test");
  admin.run("ALTER DATABASE " + database.name() + " ALLOW_CONNECTIONS false");
  connection->run(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND "
      "pid <> pg_backend_pid()");
  REQUIRE(eventually(
      [&] { return count(simulation.errors(), "connection lost, connecting again reason=") == 1; }));
  simulation.process().signal(SIGINT);
  CHECK(simulation.process().wait() == 130);
}

}  // namespace mailroom::test::simulate_test
