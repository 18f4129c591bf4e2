// Many waiting or expired tokens when a collector starts.

#include <fmt/format.h>
#include <fstream>

#include "fault/trial.hpp"

namespace mailroom::test {
namespace {

/// The peak memory of a process, in KiB.
long peak_memory(int pid) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::stol(line.substr(6));
  }
  throw std::runtime_error("the collector's memory cannot be read");
}

Outcome drain(Cluster& cluster, const Plan& plan, bool expired) {
  Trial trial(cluster, plan,
              {.collectors = 1, .writers = 0, .limit = 1000, .silent = true, .slow_triggers = false});
  const int tokens = plan.shortened ? 10'000 : 1'000'000;
  const auto connection = trial.connect();
  insert_accounts(*connection, 1000, "backlog");
  const auto start = std::chrono::steady_clock::now();
  connection->run(
      "INSERT INTO tokens (account, action, created_at, expires_at) "
      "SELECT 1 + g % 1000, 'activation', n, CASE WHEN $2 THEN n - 60 ELSE n + 86400 END "
      "FROM generate_series(1, $1) g, LATERAL (SELECT floor(extract(epoch FROM now()))::bigint AS n) t",
      tokens, expired);
  trial.expect(eventually([&] { return is_drained(*connection); }, std::chrono::seconds(900)),
               "the backlog drains");
  const auto took = std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - start);
  const long memory = peak_memory(trial.crew().member(0).process().pid());
  trial.expect(memory < 32L * 1024, "the collector needs less than 32 MiB");
  trial.note(fmt::format("{} tokens written and drained in {} ms, memory at most {} KiB", tokens,
                         took.count(), memory));
  return trial.finish(1);
}

}  // namespace

std::vector<Fault> backlog_faults() {
  const auto due = [](Cluster& cluster, const Plan& plan) { return drain(cluster, plan, false); };
  const auto expired = [](Cluster& cluster, const Plan& plan) { return drain(cluster, plan, true); };
  return {{"backlog of a million (short: 10,000)", "each once, in less than 32 MiB", 1, 1, due},
          {"backlog of a million expired ones", "skipped, in less than 32 MiB", 1, 1, expired}};
}

}  // namespace mailroom::test
