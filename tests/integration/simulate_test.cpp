// `mailroom simulate` beside a collector, when its connection is lost, and when it is stopped early.

#include <csignal>

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

std::int64_t count_of(db::Connection& connection, const std::string& rows) {
  return value<std::int64_t>(connection, "SELECT count(*) FROM " + rows);
}

}  // namespace

TEST_CASE("people whose tokens were emitted activate and recover by the shares, while others wait") {
  TestDatabase database;
  const auto connection = database.connect();
  TestSimulation simulation(
      database, {"--accounts", "200", "--rate", "400", "--activate", "50", "--recover", "40", "-o", "json"});
  REQUIRE(eventually([&] { return count_of(*connection, "accounts") == 200; }));
  CHECK(count_of(*connection, "tokens WHERE consumed_at IS NOT NULL") == 0);
  TestCollector collector(database, {});
  const int status = simulation.process().wait();
  INFO(simulation.errors());
  REQUIRE(status == 0);
  CHECK(collector.stop() == 0);
  const auto told = parse_json(simulation.output());
  CHECK(told.at("accounts") == 200);
  CHECK(told.at("activated") == 100);
  CHECK(told.at("recovered") == 40);
  CHECK(told.at("expired") == 0);
  CHECK(count_of(*connection, "accounts WHERE status = 'active'") == 100);
  CHECK(count_of(*connection, "tokens") == 240);
  CHECK(count_of(*connection, "tokens WHERE action = 'activation' AND consumed_at IS NOT NULL") == 100);
  CHECK(count_of(*connection, "tokens WHERE action = 'password_recovery' AND consumed_at IS NOT NULL") == 40);
}

TEST_CASE("a simulation that loses its connection says so, and what it created can be removed") {
  TestDatabase database;
  const auto connection = database.connect();
  TestSimulation simulation(database, {"--accounts", "100000", "--rate", "100"});
  REQUIRE(eventually([&] { return count_of(*connection, "accounts") > 0; }));
  connection->run(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
      "AND application_name LIKE 'mailroom simulate %'");
  CHECK(simulation.process().wait() == 4);
  TestSimulation cleaning(database, {"--clean-up"});
  CHECK(cleaning.process().wait() == 0);
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

}  // namespace mailroom::test::simulate_test
