// The rules about notifications, synchronous standbys and tokens in another schema.

#include <fmt/format.h>

#include "base/wording.hpp"
#include "health/queue_health.hpp"
#include "status/fix_commands.hpp"

namespace mailroom::health {
namespace {

std::string percent_text(double share) {
  return share < 0.1 ? fmt::format("{:.1f} %", share * 100) : fmt::format("{:.0f} %", share * 100);
}

/// The session to end: the oldest transaction. A listener may be any of them.
std::string holders_text(const std::vector<status::ServerSession>& sessions) {
  const auto& oldest = sessions.front();
  auto text = fmt::format("{}, {}", status::session_text(oldest), status::activity_text(oldest));
  if (oldest.transaction_age)
    text += ", has had a transaction open for " + status::age_text(*oldest.transaction_age);
  text += sessions.size() == 1
              ? ", and holds it back if it listens"
              : fmt::format(
                    ", and holds it back if it listens; {} have open transactions too, which may be the "
                    "next to hold it back",
                    counted(static_cast<std::int64_t>(sessions.size()) - 1, "other session"));
  return text;
}

}  // namespace

std::optional<QueueFinding> judge_notifications(const status::NotificationQueue& queue) {
  if (queue.usage < status::NotificationQueue::worth_a_look) return std::nullopt;
  const bool fails = queue.usage >= 0.5;
  auto text = fmt::format(
      "the server's queue of notifications is {} full. When it is full, every INSERT into accounts fails",
      percent_text(queue.usage));
  status::Fix fix;
  std::string hint;
  if (queue.open_transactions.empty()) {
    text += ". No session has a transaction open that would hold it back: it empties by itself";
    hint = "to see how full it is: SELECT pg_notification_queue_usage();";
  } else {
    text += ". " + holders_text(queue.open_transactions);
    // The server moves the end of the queue only when somebody looks at it.
    fix = {status::FixKind::drain_notifications, status::end_session(queue.open_transactions.front().pid) +
                                                     "\nSELECT pg_notification_queue_usage();"};
  }
  return QueueFinding{fails ? Severity::failure : Severity::warning, "notifications_held", std::move(text),
                      std::move(fix), std::move(hint)};
}

bool waits_for_standby(const status::ServerSession& session) {
  return session.wait == "IPC/SyncRep";
}

std::optional<QueueFinding> judge_standby_wait(const status::QueueStatus& status,
                                               const HealthLimits& limits) {
  const status::ServerSession* longest = nullptr;
  const auto consider = [&](const status::ServerSession& session) {
    const bool is_longer = longest == nullptr || session.silent_for > longest->silent_for;
    if (waits_for_standby(session) && session.silent_for > limits.lock_held && is_longer) longest = &session;
  };
  for (const auto& collector : status.collectors)
    consider(collector.session);
  if (status.lock) consider(status.lock->session);
  if (status.longest_commit) consider(*status.longest_commit);
  if (longest == nullptr) return std::nullopt;
  return standby_awaited(*longest);
}

QueueFinding standby_awaited(const status::ServerSession& session) {
  return {
      Severity::failure,
      "standby_awaited",
      fmt::format(
          "{} has waited for {} for a synchronous standby to confirm its commit, as every commit does: no claim and "
          "no INSERT can proceed. Start the standbys that synchronous_standby_names lists. The fix goes on without them; ending "
          "the session does not help",
          status::session_text(session), status::age_text(session.silent_for.value_or(Milliseconds{0}))),
      {status::FixKind::skip_standby,
       "ALTER SYSTEM SET synchronous_standby_names = '';\nSELECT pg_reload_conf();"}};
}

std::optional<QueueFinding> judge_other_schema(const status::QueueStatus& status) {
  if (!status.other) return std::nullopt;
  const auto& other = *status.other;
  return QueueFinding{
      Severity::failure,
      "other_schema",
      fmt::format("{} {} in the schema {}, which no collector serves, and the schema {} never had one",
                  counted(other.waiting, "token"), other.waiting == 1 ? "waits" : "wait", other.schema,
                  status.schema),
      {},
      fmt::format("mailroom --schema {} status shows them; the consumers need this schema too, in "
                  "database.schema or with --schema",
                  shell_word(other.schema))};
}

}  // namespace mailroom::health
