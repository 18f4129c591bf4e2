// What `mailroom collect` and `mailroom send` tell a service manager. The test is the service manager.

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <sstream>

#include "consumer/service_reporter.hpp"
#include "support/catch.hpp"
#include "support/named_pipe.hpp"
#include "support/notify_socket.hpp"
#include "support/refusing_port.hpp"
#include "support/test_collector.hpp"
#include "support/test_sender.hpp"

namespace mailroom::test::service_test {
namespace {

using Environment = std::map<std::string, std::string>;

/// Signs of life are due every 200 ms, and are sent twice as often.
constexpr auto watchdog_usec = "400000";

Environment service(const NotifySocket& manager) {
  return {{"NOTIFY_SOCKET", manager.path()}, {"WATCHDOG_USEC", watchdog_usec}};
}

/// True after several further signs of life: the service would have been killed without them.
bool stays_alive(const NotifySocket& manager) {
  return manager.has("WATCHDOG=1", manager.count("WATCHDOG=1") + 10);
}

bool waits_for_lock(db::Connection& connection) {
  return locks(connection, "NOT granted") > 0;
}

}  // namespace

TEST_CASE("a service is ready after LISTEN and the first poll") {
  TestDatabase database;
  auto connection = database.connect();
  auto holder = database.connect();
  holder->run("BEGIN");
  holder->run("SELECT mailroom_lock_queue('mailroom')");
  NotifySocket manager;
  // It polls once an hour, so that a notification must wake it.
  TestCollector collector(database, {"--poll-interval", "1h", "--batch-limit", "1", "--format", "jsonl"},
                          service(manager));
  REQUIRE(eventually([&] { return waits_for_lock(*connection); }));
  CHECK(manager.has_part("STATUS="));
  CHECK(manager.count("READY=1") == 0);
  holder->run("COMMIT");
  REQUIRE(manager.has("READY=1"));
  insert_accounts(*connection, 1);
  CHECK(eventually([&] { return emitted_ids(collector.output()).size() == 1; }));
  CHECK(manager.has_part("; 1 emitted"));
  CHECK(collector.stop() == 0);
  CHECK(manager.has("STOPPING=1"));
  CHECK(manager.count("READY=1") == 1);
}

TEST_CASE("a service that ends as soon as it is asked to stop says that it stops") {
  NotifySocket socket;
  setenv("NOTIFY_SOCKET", socket.path().c_str(), 1);
  std::ostringstream text;
  Log log({}, text);
  for (int stops = 1; stops <= 20; ++stops) {
    const consumer::ServiceManager manager(log);
    const process::StopSignal signal;
    const process::StopWatcher watcher(signal, log);
    {
      const consumer::ServiceReporter reporter(manager, signal, watcher);
      std::raise(SIGTERM);
    }
    REQUIRE(socket.has("STOPPING=1", stops));
    REQUIRE(socket.count("STOPPING=1") == stops);
  }
  unsetenv("NOTIFY_SOCKET");
}

TEST_CASE("a service that does not reach its database is not ready, and says so") {
  NotifySocket manager;
  TestCollector collector("host=/nonexistent", {"--wait", "1h"}, service(manager));
  CHECK(manager.has_part("STATUS=waiting for the database"));
  CHECK(stays_alive(manager));
  CHECK(manager.count("READY=1") == 0);
  CHECK(collector.stop() == 0);
}

TEST_CASE("a service is alive while its reader takes nothing, and says at once that it stops") {
  TestDatabase database;
  NamedPipe pipe;
  NotifySocket manager;
  insert_accounts(*database.connect(), 1000, "a-login-that-is-long-enough-to-fill-the-pipe-");
  TestCollector collector(database.conninfo(), {"--format", "jsonl", "--batch-limit", "1000"},
                          service(manager), pipe.path());
  REQUIRE(eventually([&] { return pipe.is_full(); }));
  CHECK(manager.has("READY=1"));
  CHECK(stays_alive(manager));
  CHECK(manager.has_part("the receiver takes nothing for"));
  CHECK(manager.has_part(" 1,000 pending"));
  collector.process().signal(SIGTERM);
  CHECK(manager.has("STOPPING=1"));
  std::string output;
  CHECK(eventually([&] {
    output += pipe.take(65536);
    return emitted_ids(output).size() == 1000;
  }));
  CHECK(collector.process().wait() == 0);
}

TEST_CASE("a service is alive while a statement waits for a lock") {
  TestDatabase database;
  auto connection = database.connect();
  NotifySocket manager;
  TestCollector collector(database, {}, service(manager));
  REQUIRE(manager.has("READY=1"));
  auto holder = database.connect();
  holder->run("BEGIN");
  holder->run("SELECT mailroom_lock_queue('mailroom')");
  insert_accounts(*connection, 1);
  REQUIRE(eventually([&] { return waits_for_lock(*connection); }));
  CHECK(stays_alive(manager));
  holder->run("COMMIT");
  CHECK(collector.stop() == 0);
}

TEST_CASE("a service is alive while it is idle and polls rarely") {
  TestDatabase database;
  NotifySocket manager;
  TestCollector collector(database, {"--poll-interval", "1h"}, service(manager));
  REQUIRE(manager.has("READY=1"));
  CHECK(stays_alive(manager));
  CHECK(collector.stop() == 0);
}

TEST_CASE("a sender is alive while its relay does not answer") {
  TestDatabase database;
  NotifySocket manager;
  TestRelay relay({.play = TestRelay::at(RelayStep::end, RelayAnswer::nothing(RelayAnswer::Then::hang))});
  insert_accounts(*database.connect(), 1);
  TestSender sender(database.conninfo(), relay.url(), {}, service(manager));
  REQUIRE(eventually([&] {
    const auto commands = relay.commands();
    return std::any_of(commands.begin(), commands.end(),
                       [](const auto& each) { return each.find("DATA") != std::string::npos; });
  }));
  CHECK(manager.has("READY=1"));
  CHECK(stays_alive(manager));
  sender.process().signal(SIGKILL);
  CHECK(sender.wait() == 128 + SIGKILL);
}

TEST_CASE("a sender whose relay is unavailable is ready") {
  TestDatabase database;
  const RefusingPort port;
  const auto relay = "smtp://127.0.0.1:" + std::to_string(port.port());
  insert_accounts(*database.connect(), 5);
  NotifySocket first;
  TestSender learns(database.conninfo(), relay, {}, service(first));
  REQUIRE(eventually([&] { return learns.log().find("the relay is unavailable") != std::string::npos; }));
  // The second one hears of it before its first poll.
  NotifySocket manager;
  TestSender sender(database.conninfo(), relay, {}, service(manager));
  CHECK(manager.has("READY=1"));
  CHECK(stays_alive(manager));
  CHECK(sender.stop() == 0);
  CHECK(learns.stop() == 0);
}

TEST_CASE("a service says when it reloads, and when it has") {
  TestDatabase database;
  NotifySocket manager;
  TestCollector collector(database, {}, service(manager));
  REQUIRE(manager.has("READY=1"));
  collector.process().signal(SIGHUP);
  CHECK(manager.has("RELOADING=1"));
  CHECK(manager.has_part("MONOTONIC_USEC="));
  CHECK(manager.has("READY=1", 2));
  CHECK(collector.stop() == 0);
}

TEST_CASE("a service of the wrong configuration ends with the code that keeps it from being restarted") {
  NotifySocket manager;
  auto environment = service(manager);
  environment["MAILROOM_BATCH_LIMIT"] = "none";
  TestCollector collector("host=/nonexistent", {}, environment);
  CHECK(collector.process().wait() == 3);
  CHECK(manager.count("READY=1") == 0);
}

}  // namespace mailroom::test::service_test
