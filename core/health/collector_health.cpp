// The rules about collectors: none is there, a batch is with one for too long, or one does not poll.

#include <algorithm>
#include <fmt/format.h>

#include "base/wording.hpp"
#include "health/queue_health.hpp"
#include "status/fix_commands.hpp"

namespace mailroom::health {
namespace {

/// Each function is one rule.
class CollectorRules {
 public:
  CollectorRules(const status::QueueStatus& status, const HealthLimits& limits)
      : status_(status), limits_(limits) {}

  std::vector<QueueFinding> findings() {
    // Consumers refuse to serve a copy, which another rule reports.
    if (!status_.home_problem.empty() && status_.collectors.empty()) return {};
    judge_absence();
    judge_batches();
    judge_silence();
    judge_schedule();
    return std::move(found_);
  }

 private:
  void fail(std::string code, std::string text, status::Fix fix, std::string hint = {}) {
    found_.push_back({Severity::failure, std::move(code), std::move(text), std::move(fix), std::move(hint)});
  }
  void warn(std::string code, std::string text, status::Fix fix, std::string hint) {
    found_.push_back({Severity::warning, std::move(code), std::move(text), std::move(fix), std::move(hint)});
  }

  bool is_paused() const { return status_.record.pause.has_value(); }

  void judge_absence() {
    if (!status_.collectors.empty() || (is_schedule_overdue() && status_.pending.total() == 0)) return;
    const std::string none =
        status_.elsewhere.empty() ? "no collector is connected" : "no connected collector serves this queue";
    if (is_paused() && status_.pending.total() > 0) {
      warn("no_collector", none + " for when the queue is resumed. " + start_service(), {}, service());
    } else if (status_.pending.total() > 0) {
      fail("no_collector", tokens_waiting(status_) + " and " + none + ". " + start_service(), {}, service());
    } else {
      warn("no_collector", none + "; no token waits. " + start_service(), {}, service());
    }
  }

  /// A connected collector's process, or else the last one's.
  std::optional<status::CollectorProcess> known_process() const {
    for (const auto& collector : status_.collectors) {
      if (auto process = status::collector_process(collector.session.application)) return process;
    }
    return status_.last_claim ? status::collector_process(status_.last_claim->claimed_by) : std::nullopt;
  }

  std::string service() const {
    if (status_.elsewhere.empty()) return status::find_service(known_process(), status_.host);
    const auto process = status::collector_process(status_.elsewhere.front().application);
    return fmt::format("add {} to --queue of {}, or to the queues in its file, and restart it",
                       shell_word(status_.queue),
                       process ? process_text(*process) : status::session_text(status_.elsewhere.front()));
  }

  /// Never suggests a bare `mailroom collect`: tokens that it prints on a terminal count as emitted.
  std::string start_service() const {
    if (!status_.elsewhere.empty())
      return fmt::format(
          "{} for other queues alone",
          status_.elsewhere.size() == 1
              ? "One is connected"
              : with_thousands(static_cast<std::int64_t>(status_.elsewhere.size())) + " are connected");
    const std::string text = "Start the collector's service";
    if (!status_.last_claim) return text;
    const auto process = status::collector_process(status_.last_claim->claimed_by);
    return fmt::format("{}. The last one was {}, {} ago", text,
                       process ? process_text(*process) : status_.last_claim->claimed_by,
                       status::age_text(status_.last_claim->age));
  }

  static std::string process_text(const status::CollectorProcess& process) {
    return fmt::format("process {} on {}", process.pid, process.host);
  }

  void judge_batches() {
    for (const auto& batch : status_.open_batches) {
      if (batch.age <= limits_.batch_open || waits_for_standby_in(batch.collector)) continue;
      if (batch.session_lives) {
        fail_open_batch(batch);
      } else if (may_be_taken_over(batch) && !waits_for_standby_in() &&
                 (!status_.collectors.empty() || status_.pending.total() == 0)) {
        fail("batch_left",
             fmt::format(
                 "{} was claimed {} ago by {}, whose session has ended, and no collector takes it over. "
                 "{}",
                 batch_text(batch), status::age_text(batch.age), batch.claimed_by, start_service()),
             {}, service());
      }
    }
  }

  /// A consumer that is connected may take a while to release them. A restart takes some seconds.
  bool is_schedule_overdue() const {
    constexpr std::chrono::seconds restart{10};
    const bool has_consumer = !status_.collectors.empty() || !status_.elsewhere.empty();
    return status_.scheduled.overdue(status_.now) >
           (has_consumer ? limits_.collector_silence + schedule_interval : Milliseconds(restart));
  }

  /// Any consumer makes tokens of scheduled messages, whatever queues it serves.
  void judge_schedule() {
    if (!is_schedule_overdue()) return;
    const auto overdue = status_.scheduled.overdue(status_.now);
    const auto what =
        fmt::format("the first of {} has been overdue for {}, and ",
                    counted(status_.scheduled.messages, "scheduled message"), status::age_text(overdue));
    const auto& role = status_.may_not_release;
    if (status_.collectors.empty() && status_.elsewhere.empty()) {
      fail("schedule_overdue", what + "no collector is connected. " + start_service(), {}, service());
    } else if (!role.empty()) {
      fail("schedule_overdue",
           fmt::format("{}{}, the role of a collector, may not execute mailroom_release()", what, role),
           {status::FixKind::grant,
            fmt::format("GRANT EXECUTE ON FUNCTION {}.mailroom_release(integer) TO {};", status_.schema,
                        role)});
    } else {
      fail("schedule_overdue", what + "no connected collector makes tokens of them", {},
           "their logs say what they wait for");
    }
  }

  /// A collector of pid `pid`, or of any.
  bool waits_for_standby_in(std::optional<int> pid = {}) const {
    return std::ranges::any_of(status_.collectors, [&](const auto& collector) {
      return pid.value_or(collector.session.pid) == collector.session.pid &&
             waits_for_standby(collector.session);
    });
  }

  bool may_be_taken_over(const status::OpenBatch& batch) const {
    return !is_paused() && status_.record.wait_for(batch.tokens) == Milliseconds{0};
  }

  static std::string batch_text(const status::OpenBatch& batch) {
    return fmt::format("batch {} ({})", with_thousands(batch.id), counted(batch.tokens, "token"));
  }

  /// Another collector can take the batch over once the session ends. Without another collector, ending the
  /// session would not help; the resumed process can still acknowledge its line.
  void fail_open_batch(const status::OpenBatch& batch) {
    const auto leased = fmt::format("{} has been leased to {} for {}", batch_text(batch), batch.claimed_by,
                                    status::age_text(batch.age));
    const bool is_sender = batch.claimed_by.starts_with("mailroom send");
    if (batch.process == status::ProcessSight::runs) {
      fail("batch_open",
           fmt::format("{}, and that process runs: it waits for {}", leased,
                       is_sender ? "the answer of a relay" : "the reader of its output"),
           {},
           is_sender
               ? "its log names the relay, which has two minutes to answer the end of a mail. Restarting the "
                 "sender gives up what is in flight, and tries it again: the relay may have it already"
               : "look at the reader of its output, or at what takes its batches");
      return;
    }
    const auto process = status::collector_process(batch.claimed_by);
    const auto cause = batch.process == status::ProcessSight::stopped
                           ? std::string(": that process is stopped")
                       : is_sender ? std::string(": that process is stopped, or waits for a relay")
                                   : std::string(": that process is stopped, or the reader of its output is");
    if (batch.process == status::ProcessSight::stopped && process) {
      // Whoever takes the batch over mails again what the stopped process has sent.
      fail(
          "batch_open", fmt::format("{}{}. {}", leased, cause, continuing(*process)),
          status::continue_process(*process, status_.host),
          fmt::format(
              "if it cannot go on, end it and its session: {} then another one takes the batch over, and up to {} "
              "may be emitted twice",
              static_cast<const std::string&>(status::end_session(batch.collector)),
              counted(batch.tokens, "token")));
    } else if (any_at_work() || !process) {
      fail(
          "batch_open",
          fmt::format(
              "{}{}. Ending its session, backend pid {}, frees the batch for another collector, and up to {} may "
              "be emitted twice",
              leased, cause, batch.collector, counted(batch.tokens, "token")),
          status::end_session(batch.collector));
    } else {
      fail("batch_open", leased + cause, {}, may_continue(*process));
    }
  }

  static std::string continuing(const status::CollectorProcess& process) {
    return fmt::format("SIGCONT resumes {}. If that does not help, restart it and its reader",
                       process_text(process));
  }

  /// For a process that cannot be seen from here.
  std::string may_continue(const status::CollectorProcess& process) const {
    return fmt::format("if it is stopped, this resumes it: {}. Otherwise its log says what it waits for",
                       status::continue_process(process, status_.host));
  }

  bool holds_late_batch(int pid) const {
    return std::ranges::any_of(status_.open_batches, [&](const status::OpenBatch& batch) {
      return batch.collector == pid && batch.age > limits_.batch_open;
    });
  }

  /// A working collector polls once per poll interval.
  bool is_silent(const status::ServerSession& session) const {
    return session.silent_for > limits_.collector_silence;
  }

  bool any_at_work() const {
    return std::ranges::any_of(status_.collectors, [&](const auto& collector) {
      return !holds_late_batch(collector.session.pid) && !is_silent(collector.session);
    });
  }

  /// Skips collectors whose problem another rule reports.
  void judge_silence() {
    const bool holds_up = !is_paused() && !any_at_work() && status_.pending.total() > 0;
    for (const auto& collector : status_.collectors) {
      const auto& session = collector.session;
      if (holds_late_batch(session.pid) || !is_silent(session) || waits_for_queue_lock(session) ||
          waits_for_standby(session))
        continue;
      found_.push_back(silence_of(collector, holds_up ? Severity::failure : Severity::warning));
    }
  }

  /// True if the holder of the queue's lock is the cause, which judge_locks() reports.
  bool waits_for_queue_lock(const status::ServerSession& session) const {
    return status_.lock && status_.lock->longest_wait && session.wait == "Lock/advisory";
  }

  QueueFinding silence_of(const status::AttachedCollector& collector, Severity severity) const {
    const auto& session = collector.session;
    const auto age = status::age_text(*session.silent_for);
    if (session.state == "active") {
      return {
          severity,
          "collector_blocked",
          fmt::format("{} has been running one statement for {}{}", status::session_text(session), age,
                      session.wait.empty() ? "" : ", waiting for " + session.wait),
          {},
          fmt::format(
              "to see what blocks it: SELECT * FROM pg_stat_activity WHERE pid = ANY (pg_blocking_pids({}));",
              session.pid)};
    }
    QueueFinding finding{severity, "collector_silent",
                         fmt::format("{} has not polled for {}", status::session_text(session), age)};
    const auto process = status::collector_process(session.application);
    if (collector.process == status::ProcessSight::runs) {
      finding.text += ", though its process runs";
      finding.hint = "its log says what it waits for; a restart ends that";
    } else if (collector.process == status::ProcessSight::stopped) {
      finding.text += fmt::format(": its process is stopped. {}", continuing(*process));
      finding.fix = status::continue_process(*process, status_.host);
    } else {
      finding.text += ": is its process stopped?";
      finding.hint = process ? may_continue(*process) : "restart it";
    }
    return finding;
  }

  const status::QueueStatus& status_;
  const HealthLimits& limits_;
  std::vector<QueueFinding> found_;
};

}  // namespace

std::vector<QueueFinding> judge_collectors(const status::QueueStatus& status, const HealthLimits& limits) {
  return CollectorRules(status, limits).findings();
}

}  // namespace mailroom::health
