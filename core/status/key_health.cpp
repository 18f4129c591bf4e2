// The rule about collectors that sign with different keys.

#include <fmt/format.h>

#include "status/queue_health.hpp"

namespace mailroom {

std::map<std::string, std::string> pids_by_key(const QueueStatus& status) {
  std::map<std::string, std::string> keys;
  for (const auto& collector : status.collectors) {
    if (collector.key.empty()) continue;
    auto& pids = keys[collector.key];
    pids += fmt::format("{}pid {}", pids.empty() ? "" : " and ", collector.session.pid);
  }
  return keys;
}

std::optional<QueueFinding> judge_keys(const QueueStatus& status) {
  const auto keys = pids_by_key(status);
  if (keys.size() < 2) return std::nullopt;
  std::string who;
  for (const auto& [key, pids] : keys)
    who += fmt::format("{}{} by {}", who.empty() ? "" : ", ", key, pids);
  return QueueFinding{
      Severity::warning, "different_keys",
      "the collectors sign with different keys: " + who +
          ". A verifier with only one of these keys rejects tokens signed with the others. SIGHUP makes a "
          "collector reload its key",
      ""};
}

}  // namespace mailroom
