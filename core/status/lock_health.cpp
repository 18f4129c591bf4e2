// What holds a queue's locks.

#include <fmt/format.h>

#include "status/fix_commands.hpp"
#include "status/queue_health.hpp"

namespace mailroom {
namespace {

std::optional<QueueFinding> judge_queue_lock(const QueueStatus& status, const HealthLimits& limits) {
  if (!status.lock || waits_for_standby(status.lock->session)) return std::nullopt;
  const auto& lock = *status.lock;
  const bool waited_for = lock.longest_wait > limits.lock_held;
  if (!waited_for && !(lock.session.transaction_age > limits.lock_held)) return std::nullopt;
  const auto held_for = lock.session.transaction_age.value_or(lock.longest_wait.value_or(Milliseconds{0}));
  return QueueFinding{
      Severity::failure, "queue_locked",
      fmt::format("{} has held the queue's lock for up to {}, {}: no claim can proceed",
                  session_text(lock.session), age_text(held_for), activity_text(lock.session)),
      end_session(lock.session.pid)};
}

}  // namespace

std::vector<QueueFinding> judge_locks(const QueueStatus& status, const HealthLimits& limits) {
  std::vector<QueueFinding> findings;
  if (auto held = judge_queue_lock(status, limits)) findings.push_back(std::move(*held));
  // Any role that may connect may take any advisory lock.
  for (const auto& session : status.foreign_locks) {
    findings.push_back(
        {Severity::warning, "foreign_lock",
         session_text(session) + " holds a mailroom lock but is not a collector: it can block collectors",
         end_session(session.pid)});
  }
  return findings;
}

}  // namespace mailroom
