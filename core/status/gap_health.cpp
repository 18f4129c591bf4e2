// The rule about transactions that keep tokens in gaps.

#include <fmt/format.h>

#include "base/text.hpp"
#include "status/fix_commands.hpp"
#include "status/queue_health.hpp"

namespace mailroom {
namespace {

QueueFinding held_by(const GapHolder& holder) {
  const auto age = age_text(*holder.session.transaction_age);
  const auto waits = fmt::format("up to {} of its own in the gap wait for its end, all others are emitted",
                                 counted(holder.ids, "token"));
  if (holder.session.pid != 0) {
    return {Severity::warning, "gap_held",
            fmt::format("{} has had a transaction open for {}, {}: {}", session_text(holder.session), age,
                        activity_text(holder.session), waits),
            end_session(holder.session.pid)};
  }
  const bool is_named = printable(holder.gid) == holder.gid;
  return {
      Severity::warning, "gap_held",
      fmt::format("prepared transaction {} of user {} has been open for {}: {}", holder.gid,
                  holder.session.user, age, waits),
      is_named ? "ROLLBACK PREPARED " + sql_literal(holder.gid) + ";" : "",
      is_named ? "" : "SELECT gid, prepared FROM pg_prepared_xacts; shows its name, for ROLLBACK PREPARED"};
}

}  // namespace

std::vector<QueueFinding> judge_gaps(const QueueStatus& status, const HealthLimits& limits) {
  std::vector<QueueFinding> found;
  bool hidden = false;
  for (const auto& holder : status.gap_holders) {
    if (!holder.writes_tokens) continue;
    hidden = hidden || !holder.session.readable;
    if (holder.session.transaction_age > limits.transaction_open) found.push_back(held_by(holder));
  }
  if (hidden) {
    found.push_back(
        {Severity::warning, "gap_hidden",
         "a gap waits for a transaction that is owned by another user: its age is visible only with "
         "pg_monitor",
         "GRANT pg_monitor TO " + status.role + ";"});
  }
  return found;
}

}  // namespace mailroom
