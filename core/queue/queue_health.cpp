#include "queue/queue_health.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/duration.hpp"
#include "base/text.hpp"

namespace mailroom {
namespace {

/// As a word of the shell.
std::string shell_word(const std::string& text) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.'; };
  if (!text.empty() && text.front() != '-' && std::all_of(text.begin(), text.end(), plain)) return text;
  std::string quoted = "'";
  for (const char c : text)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string sql_literal(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text)
    quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return quoted + "'";
}

/// `mailroom COMMAND`, for this queue.
std::string for_queue(const std::string& command, const QueueStatus& status) {
  const auto option = status.queue == "mailroom" ? std::string() : " --queue=" + shell_word(status.queue);
  return "mailroom " + command + option;
}

std::string end_session(int pid) {
  return fmt::format("SELECT pg_terminate_backend({});", pid);
}

bool longer(const std::optional<Milliseconds>& duration, Milliseconds limit) {
  return duration && *duration > limit;
}

/// Gathers findings. One rule a function; each reads the facts alone.
class Judge {
 public:
  Judge(const QueueStatus& status, const HealthLimits& limits) : status_(status), limits_(limits) {}

  std::vector<QueueFinding> findings() {
    judge_sequence();
    if (status_.on_standby) {
      warn("standby",
           "this server is a standby: collectors, their batches and who holds up the queue can be "
           "seen on the primary alone");
    } else {
      judge_lock();
      judge_absence();
      judge_batches();
      judge_silence();
      judge_holders();
    }
    judge_thresholds();
    judge_set_aside();
    std::stable_sort(found_.begin(), found_.end(),
                     [](const QueueFinding& a, const QueueFinding& b) { return a.severity > b.severity; });
    return std::move(found_);
  }

 private:
  void fail(std::string code, std::string text, std::string mend) {
    found_.push_back({Severity::failure, std::move(code), std::move(text), std::move(mend)});
  }
  void warn(std::string code, std::string text, std::string mend = {}) {
    found_.push_back({Severity::warning, std::move(code), std::move(text), std::move(mend)});
  }

  std::string tokens_waiting() const {
    const auto total = status_.waiting.total();
    return fmt::format("{}{} {}", status_.waiting.estimated ? "~" : "", counted(total, "token"),
                       total == 1 ? "waits" : "wait");
  }

  void judge_sequence() {
    if (status_.newest >= status_.cursor) return;
    fail("sequence_behind",
         fmt::format("the sequence of tokens stands at {}, behind the cursor at {}: every claim fails. "
                     "--to-start hands on what is there now, --to-end only what comes from now on",
                     with_thousands(status_.newest), with_thousands(status_.cursor)),
         for_queue("rewind-cursor --to-start", status_));
  }

  void judge_lock() {
    if (!status_.lock) return;
    const auto& lock = *status_.lock;
    const bool waited_for = longer(lock.longest_wait, limits_.lock_held);
    if (!waited_for && !longer(lock.session.transaction_age, limits_.lock_held)) return;
    const auto held_for = lock.session.transaction_age.value_or(lock.longest_wait.value_or(Milliseconds{0}));
    fail("queue_locked",
         fmt::format("{} has held the queue's lock for up to {}, {}: no claim gets by",
                     session_text(lock.session), age_text(held_for), activity_text(lock.session)),
         end_session(lock.session.pid));
  }

  void judge_absence() {
    if (!status_.collectors.empty()) return;
    const auto mend = for_queue("collect", status_);
    if (status_.waiting.total() > 0) {
      fail("no_collector", tokens_waiting() + " and no collector is connected", mend);
    } else {
      warn("no_collector", "no collector is connected; no token waits", mend);
    }
  }

  void judge_batches() {
    for (const auto& batch : status_.open_batches) {
      if (batch.age <= limits_.batch_open) continue;
      const auto what =
          fmt::format("batch {} ({})", with_thousands(batch.id), counted(batch.tokens, "token"));
      if (batch.session_lives) {
        fail("batch_open",
             fmt::format(
                 "{} has been with {} for {}: that process is stopped, or the reader of its output is. "
                 "Ending its session, backend pid {}, frees the batch for another collector",
                 what, batch.claimed_by, age_text(batch.age), batch.collector),
             end_session(batch.collector));
      } else if (!status_.collectors.empty() || status_.waiting.total() == 0) {
        fail("batch_left",
             fmt::format("{} was claimed {} ago by {}, whose session is gone, and no collector takes it over",
                         what, age_text(batch.age), batch.claimed_by),
             for_queue("collect", status_));
      }
    }
  }

  bool holds_late_batch(int pid) const {
    return std::any_of(status_.open_batches.begin(), status_.open_batches.end(), [&](const OpenBatch& batch) {
      return batch.collector == pid && batch.age > limits_.batch_open;
    });
  }

  /// A collector that works asks for work once a poll interval. What holds it up may have been said already.
  void judge_silence() {
    std::vector<const ServerSession*> silent;
    std::size_t at_work = 0;
    for (const auto& collector : status_.collectors) {
      const auto& session = collector.session;
      if (holds_late_batch(session.pid)) continue;
      if (longer(session.silent_for, limits_.collector_silence)) {
        silent.push_back(&session);
      } else {
        ++at_work;
      }
    }
    const bool holds_up = at_work == 0 && status_.waiting.total() > 0;
    for (const auto* session : silent) {
      if (waits_for_queue_lock(*session)) continue;
      auto finding = silence_of(*session);
      finding.severity = holds_up ? Severity::failure : Severity::warning;
      found_.push_back(std::move(finding));
    }
  }

  /// Then the holder of that lock is the one to blame.
  bool waits_for_queue_lock(const ServerSession& session) const {
    return status_.lock && status_.lock->longest_wait && session.wait == "Lock/advisory";
  }

  static QueueFinding silence_of(const ServerSession& session) {
    const auto age = age_text(*session.silent_for);
    if (session.state == "active") {
      return {
          Severity::warning, "collector_blocked",
          fmt::format("{} has been at one statement for {}{}", session_text(session), age,
                      session.wait.empty() ? "" : ", waiting for " + session.wait),
          fmt::format("SELECT * FROM pg_stat_activity WHERE pid = ANY (pg_blocking_pids({}));", session.pid)};
    }
    return {
        Severity::warning, "collector_silent",
        fmt::format("{} has asked for no work for {}: is its process stopped?", session_text(session), age),
        end_session(session.pid)};
  }

  void judge_holders() {
    bool hidden = false;
    for (const auto& holder : status_.hole_holders) {
      if (!holder.writes_tokens) continue;
      hidden = hidden || !holder.session.readable;
      if (!longer(holder.session.transaction_age, limits_.transaction_open)) continue;
      const auto age = age_text(*holder.session.transaction_age);
      const auto waits = fmt::format("up to {} of its own in the hole wait for its end, all others pass",
                                     counted(holder.ids, "token"));
      if (holder.session.pid == 0) {
        warn("hole_held",
             fmt::format("prepared transaction {} of user {} has been open for {}: {}", holder.gid,
                         holder.session.user, age, waits),
             is_printable(holder.gid) ? "ROLLBACK PREPARED " + sql_literal(holder.gid) + ";"
                                      : "SELECT gid, prepared FROM pg_prepared_xacts;");
      } else {
        warn("hole_held",
             fmt::format("{} has had a transaction open for {}, {}: {}", session_text(holder.session), age,
                         activity_text(holder.session), waits),
             end_session(holder.session.pid));
      }
    }
    if (hidden) {
      warn("hole_hidden",
           "a hole waits for a transaction that is owned by another user: how old it is can be "
           "seen with pg_monitor alone",
           "GRANT pg_monitor TO " + status_.role + ";");
    }
  }

  void judge_thresholds() {
    const auto more = for_queue("collect", status_);
    const auto lag = status_.lag();
    if (limits_.max_lag && longer(lag, *limits_.max_lag)) {
      fail("max_lag",
           fmt::format("the oldest token has waited for {}, longer than --max-lag {}", age_text(*lag),
                       format_duration(*limits_.max_lag)),
           more);
    }
    if (limits_.max_pending && status_.waiting.total() > *limits_.max_pending) {
      fail("max_pending",
           fmt::format("{}, more than --max-pending {}", tokens_waiting(),
                       with_thousands(*limits_.max_pending)),
           more);
    }
  }

  void judge_set_aside() {
    for (const auto& batch : status_.set_aside) {
      warn("set_aside",
           fmt::format("batch {} ({}) was set aside {} ago, after too many attempts, the last by {}",
                       with_thousands(batch.id), counted(batch.tokens, "token"), age_text(batch.age),
                       batch.claimed_by),
           fmt::format("SELECT mailroom_replay({}, ARRAY(SELECT generate_series(lower(g), upper(g) - 1) FROM "
                       "mailroom_batches, unnest(ids) g WHERE id = {}), '{{}}');",
                       sql_literal(status_.queue), batch.id));
    }
  }

  const QueueStatus& status_;
  const HealthLimits& limits_;
  std::vector<QueueFinding> found_;
};

}  // namespace

std::vector<QueueFinding> judge_queue(const QueueStatus& status, const HealthLimits& limits) {
  return Judge(status, limits).findings();
}

Severity worst(const std::vector<QueueFinding>& findings) {
  auto worst = Severity::ok;
  for (const auto& finding : findings)
    worst = std::max(worst, finding.severity);
  return worst;
}

const char* severity_name(Severity severity) {
  return severity == Severity::failure ? "failure" : severity == Severity::warning ? "warning" : "ok";
}

std::string age_text(Milliseconds age) {
  using namespace std::chrono_literals;
  if (age < 1s) return format_duration(age);
  if (age >= 24h) return format_duration(std::chrono::floor<std::chrono::hours>(age));
  if (age >= 1h) return format_duration(std::chrono::floor<std::chrono::minutes>(age));
  return format_duration(std::chrono::floor<std::chrono::seconds>(age));
}

std::string session_text(const ServerSession& session) {
  return fmt::format("pid {} ({}, user {})", session.pid,
                     session.application.empty() ? "no application name" : session.application, session.user);
}

std::string activity_text(const ServerSession& session) {
  if (!session.readable) return "owned by another user; needs pg_monitor";
  auto text = session.state;
  if (session.silent_for) text += " for " + age_text(*session.silent_for);
  if (!session.wait.empty()) text += ", waiting for " + session.wait;
  if (!session.command.empty()) text += (session.state == "active" ? " in " : " after ") + session.command;
  return text;
}

}  // namespace mailroom
