// A collector's clock is wrong: the server's clock decides which tokens are due.

#include <filesystem>
#include <fmt/format.h>
#include <fstream>

#include "fault/trial.hpp"

namespace mailroom::test {
namespace {

std::string fake_time_library() {
  for (const auto& directory : {"x86_64-linux-gnu", "aarch64-linux-gnu", "."}) {
    const auto path = fmt::format("/usr/lib/{}/faketime/libfaketime.so.1", directory);
    if (std::filesystem::exists(path)) return path;
  }
  throw CannotBePlayed("libfaketime is not installed; scripts/install-packages --tests does that");
}

/// Sets the time of the processes that run in its environment, also while they run. Monotonic clocks do not
/// change, as on a real machine.
class WrongClock {
 public:
  WrongClock() { shift("+0"); }
  /// Sets the offset of the clock: `+1d`, `-1d`.
  void shift(const std::string& by) const {
    const std::string next = directory_.path() / "next";
    std::ofstream(next) << by << '\n';
    std::filesystem::rename(next, file());
  }
  std::map<std::string, std::string> environment() const {
    return {{"LD_PRELOAD", library_},
            {"FAKETIME_TIMESTAMP_FILE", file()},
            {"FAKETIME_NO_CACHE", "1"},
            {"FAKETIME_DONT_FAKE_MONOTONIC", "1"},
            {"FAKETIME_DONT_RESET", "1"}};
  }

 private:
  std::string file() const { return directory_.path() / "time"; }

  TemporaryDirectory directory_;
  std::string library_ = fake_time_library();
};

/// Inserts tokens that expire in an hour, and tokens that expired an hour ago: a clock that is a day off
/// confuses them.
void insert_near_expiry(db::Connection& connection, int account) {
  connection.run(
      "INSERT INTO tokens (account, action, created_at, expires_at) "
      "SELECT $1, 'activation', n, n + (CASE WHEN g % 2 = 0 THEN 3600 ELSE -3600 END) "
      "FROM generate_series(1, 40) g, LATERAL (SELECT floor(extract(epoch FROM now()))::bigint AS n) t",
      account);
}

std::int64_t emitted_by_batches(db::Connection& connection) {
  return value<std::int64_t>(connection, "SELECT coalesce(sum(emitted), 0) FROM mailroom_batches");
}

/// The clock is wrong from the start, or is set while the collectors run.
Outcome day_off(Cluster& cluster, const Plan& plan, const std::string& by, bool while_running) {
  WrongClock clock;
  if (!while_running) clock.shift(by);
  Trial trial(cluster, plan, {.collectors = 2, .environment = clock.environment()});
  const auto connection = trial.connect();
  insert_accounts(*connection, 1, "clock");
  const auto account = value<int>(*connection, "SELECT id FROM accounts WHERE login = 'clock1'");
  for (int round = 0; round < plan.rounds; ++round) {
    if (while_running) clock.shift(round % 2 == 0 ? by : "+0");
    insert_near_expiry(*connection, account);
    trial.expect(trial.crew().writes_again(), "delivery continues");
    trial.pause(500, 1000);
  }
  trial.stop_writers();
  trial.expect(eventually([&] { return is_drained(*connection); }), "the queue drains");
  const auto expired = value<std::int64_t>(
      *connection, "SELECT count(*) FROM tokens WHERE expires_at < extract(epoch FROM now())::bigint");
  const auto skipped = value<std::int64_t>(*connection, "SELECT sum(skipped_expired) FROM mailroom_batches");
  trial.expect(expired == 20 * plan.rounds && skipped == expired,
               fmt::format("what has expired is skipped ({} of {})", skipped, expired));
  trial.expect(emitted_by_batches(*connection) + skipped ==
                   value<std::int64_t>(*connection, "SELECT count(*) FROM tokens"),
               "all else is emitted");
  const auto today =
      value<std::string>(*connection, "SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD')");
  for (const auto& log : trial.crew().logs())
    trial.expect(while_running || count(log, today) == 0, "the collector's clock is wrong");
  return trial.finish(plan.rounds);
}

Fault clock_fault(const std::string& name, const std::string& by, bool while_running) {
  return {name, "the server's clock decides, nothing repeated", 6, while_running ? 1 : 0,
          [=](Cluster& cluster, const Plan& plan) { return day_off(cluster, plan, by, while_running); }};
}

}  // namespace

std::vector<Fault> clock_faults() {
  return {clock_fault("collector's clock a day ahead", "+1d", false),
          clock_fault("collector's clock a day behind", "-1d", false),
          clock_fault("collector's clock set a day ahead", "+1d", true),
          clock_fault("collector's clock set a day back", "-1d", true)};
}

}  // namespace mailroom::test
