#include <csignal>
#include <cstdlib>
#include <sstream>

#include "consumer/service_reporter.hpp"
#include "support/catch.hpp"
#include "support/notify_socket.hpp"

namespace mailroom::test::service_test {

using namespace std::chrono_literals;
using test::NotifySocket;

namespace {

constexpr TimePoint start{1h};

/// This process as a service whose manager waits `patience` for signs of life.
class Service {
 public:
  explicit Service(Milliseconds patience) {
    setenv("NOTIFY_SOCKET", socket.path().c_str(), 1);
    setenv("WATCHDOG_USEC", std::to_string(patience.count() * 1000).c_str(), 1);
  }
  ~Service() {
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  NotifySocket socket;
};

}  // namespace

TEST_CASE("a service gives no sign of life while its loop stands still") {
  Service service(100ms);
  std::ostringstream lines;
  Log log({}, lines);
  const consumer::ServiceManager manager(log);
  REQUIRE(manager.patience() == 100ms);
  process::StopSignal signal;
  process::StopWatcher watcher(signal, log);
  {
    consumer::ServiceReporter stuck(manager, signal, watcher, std::chrono::steady_clock::now() - 1h);
    REQUIRE(service.socket.has_part("STATUS="));
    raise(SIGTERM);
    REQUIRE(service.socket.has("STOPPING=1"));
  }
  CHECK(service.socket.count("WATCHDOG=1") == 0);
  {
    // It waits for a statement.
    const process::StopWatcher::Wait wait(&watcher, process::Awaited::database);
    consumer::ServiceReporter waiting(manager, signal, watcher, std::chrono::steady_clock::now() - 1h);
    CHECK(service.socket.has("WATCHDOG=1", 3));
  }
  consumer::ServiceReporter turning(manager, signal, watcher, std::chrono::steady_clock::now() + 1h);
  CHECK(service.socket.has("WATCHDOG=1", 6));
}

TEST_CASE("a service manager that has gone is a warning") {
  setenv("NOTIFY_SOCKET", "/nonexistent/notify", 1);
  std::ostringstream lines;
  Log log({}, lines);
  const consumer::ServiceManager manager(log);
  CHECK_FALSE(manager.patience());
  manager.ready();
  unsetenv("NOTIFY_SOCKET");
  CHECK(lines.str().find("cannot notify the service manager reason=\"No such file or directory\"") !=
        std::string::npos);
}

TEST_CASE("without a service manager nothing is notified") {
  unsetenv("NOTIFY_SOCKET");
  std::ostringstream lines;
  Log log({}, lines);
  const consumer::ServiceManager manager(log);
  CHECK_FALSE(manager.is_present());
  manager.ready();
  manager.reloading();
  CHECK(lines.str().empty());
}

TEST_CASE("the status of a service has its rate since the last one, and what waits") {
  consumer::ServiceStatus status(start);
  CHECK(status.renew(start + 5s) == "waiting for the database; 0 emitted");
  status.connected();
  CHECK(status.renew(start + 10s) == "0.0 tokens/s, 0 pending; 0 emitted");
  status.claimed("mailroom", false, 1200);
  status.claimed("recovery", false, 34);
  CHECK_FALSE(status.is_behind());
  status.finished(100, 2500ms);
  status.finished(23, 1s);
  CHECK(status.renew(start + 20s) ==
        "12.3 tokens/s, emitted up to 2s after their creation, 1,234 pending; 123 emitted");
  // A claim that took a batch may have left more than it saw.
  status.claimed("recovery", true, 34);
  CHECK(status.is_behind());
  status.counted(54'321);
  CHECK(status.renew(start + 21s) == "0.0 tokens/s, 54,321 pending; 123 emitted");
  status.counted(std::nullopt);
  CHECK(status.renew(start + 22s) == "0.0 tokens/s, 1,234 pending; 123 emitted");
  status.claimed("mailroom", false, 0);
  status.claimed("recovery", false, 0);
  status.delivers(start + 22s);
  CHECK(status.renew(start + 24s) == "0.0 tokens/s, 0 pending; 123 emitted");
  CHECK(status.renew(start + 72s) ==
        "0.0 tokens/s, 0 pending, the receiver takes nothing for 50s; 123 emitted");
  status.finished(1, std::nullopt);
  status.disconnected();
  CHECK(status.renew(start + 80s) == "waiting for the database; 124 emitted");
}

}  // namespace mailroom::test::service_test
