// The rules about sessions that hold a queue up: by its locks, or by a transaction that a gap waits for.

#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/wording.hpp"
#include "health/queue_health.hpp"
#include "status/fix_commands.hpp"

namespace mailroom::health {
namespace {

constexpr const char* rolls_back =
    "that rolls back what the application has done in this transaction: its mails, and the rows that belong to them, such "
    "as an order. Ask whose it is first";

std::optional<QueueFinding> judge_queue_lock(const status::QueueStatus& status, const HealthLimits& limits) {
  if (!status.lock || waits_for_standby(status.lock->session)) return std::nullopt;
  const auto& lock = *status.lock;
  const bool waited_for = lock.longest_wait > limits.lock_held;
  if (!waited_for && !(lock.session.transaction_age > limits.lock_held)) return std::nullopt;
  const auto held_for = lock.session.transaction_age.value_or(lock.longest_wait.value_or(Milliseconds{0}));
  return QueueFinding{Severity::failure, "queue_locked",
                      fmt::format("{} has held the queue's lock for up to {}, {}: no claim can proceed",
                                  status::session_text(lock.session), status::age_text(held_for),
                                  status::activity_text(lock.session)),
                      status::end_session(lock.session.pid), rolls_back};
}

QueueFinding held_by(const status::GapHolder& holder) {
  const auto age = status::age_text(*holder.session.transaction_age);
  const auto waits = fmt::format("up to {} of its own in the gap wait for its end, all others are emitted",
                                 counted(holder.ids, "token"));
  if (holder.session.pid != 0) {
    return {Severity::warning, "gap_held",
            fmt::format("{} has had a transaction open for {}, {}: {}", status::session_text(holder.session),
                        age, status::activity_text(holder.session), waits),
            status::end_session(holder.session.pid), rolls_back};
  }
  const bool is_named = printable(holder.gid) == holder.gid;
  return {Severity::warning, "gap_held",
          fmt::format("prepared transaction {} of user {} has been open for {}: {}", holder.gid,
                      holder.session.user, age, waits),
          is_named ? status::Fix(status::FixKind::rollback_prepared,
                                 "ROLLBACK PREPARED " + status::sql_literal(holder.gid) + ";")
                   : status::Fix(),
          is_named ? rolls_back
                   : "SELECT gid, prepared FROM pg_prepared_xacts; shows its name, for ROLLBACK PREPARED"};
}

}  // namespace

std::vector<QueueFinding> judge_locks(const status::QueueStatus& status, const HealthLimits& limits) {
  std::vector<QueueFinding> findings;
  if (auto held = judge_queue_lock(status, limits)) findings.push_back(std::move(*held));
  // Any role that may connect may take any advisory lock.
  for (const auto& session : status.foreign_locks) {
    findings.push_back({Severity::warning, "foreign_lock",
                        status::session_text(session) +
                            " holds a mailroom lock but is not a collector: it can block collectors",
                        status::end_session(session.pid)});
  }
  return findings;
}

std::vector<QueueFinding> judge_gaps(const status::QueueStatus& status, const HealthLimits& limits) {
  std::vector<QueueFinding> found;
  bool hidden = false;
  for (const auto& holder : status.gap_holders) {
    if (!holder.writes_tokens) continue;
    hidden = hidden || !holder.session.readable;
    if (holder.session.transaction_age > limits.transaction_open) found.push_back(held_by(holder));
  }
  if (hidden) {
    found.push_back(
        {Severity::warning,
         "gap_hidden",
         "a gap waits for a transaction that is owned by another user: its age is visible only with "
         "pg_monitor",
         {status::FixKind::grant, "GRANT pg_monitor TO " + status.role + ";"}});
  }
  return found;
}

}  // namespace mailroom::health
