// Calls the rules in their order, and has those about pauses, limits and dead letters.

#include "health/queue_health.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/wording.hpp"
#include "db/search_path.hpp"
#include "status/fix_commands.hpp"

namespace mailroom::health {
namespace {

/// Collects findings. Each function is one rule and only reads the status.
class Judge {
 public:
  Judge(const status::QueueStatus& status, const HealthLimits& limits) : status_(status), limits_(limits) {}

  std::vector<QueueFinding> findings() {
    judge_home();
    judge_what_was_stored();
    if (auto other = judge_other_schema(status_)) found_.push_back(std::move(*other));
    judge_pause();
    if (status_.on_standby) {
      warn("standby",
           "this server is a standby: collectors, their batches and sessions that block the queue are "
           "visible only on the primary");
    } else {
      if (auto standby = judge_standby_wait(status_, limits_)) found_.push_back(std::move(*standby));
      if (auto held = judge_notifications(status_.notifications)) found_.push_back(std::move(*held));
      for (auto& finding : judge_locks(status_, limits_))
        found_.push_back(std::move(finding));
      for (auto& finding : judge_collectors(status_, limits_))
        found_.push_back(std::move(finding));
      for (auto& finding : judge_keys(status_, limits_))
        found_.push_back(std::move(finding));
      for (auto& finding : judge_sinks(status_.deliveries, status_.pending.total() > 0))
        found_.push_back(std::move(finding));
      for (auto& finding :
           judge_came_back(status_.came_back, status_.deliveries.count_last_hour(fate::Outcome::accepted)))
        found_.push_back(std::move(finding));
      for (auto& finding : judge_gaps(status_, limits_))
        found_.push_back(std::move(finding));
    }
    for (const auto& action : status_.untaken)
      if (action.tokens > 0) found_.push_back(judge_untaken(action));
    for (auto& finding : judge_expiry(status_, limits_))
      found_.push_back(std::move(finding));
    judge_thresholds();
    judge_dead();
    judge_went_back();
    std::stable_sort(found_.begin(), found_.end(),
                     [](const QueueFinding& a, const QueueFinding& b) { return a.severity > b.severity; });
    return std::move(found_);
  }

 private:
  void fail(std::string code, std::string text, status::Fix fix, std::string hint = {}) {
    found_.push_back({Severity::failure, std::move(code), std::move(text), std::move(fix), std::move(hint)});
  }
  void warn(std::string code, std::string text, status::Fix fix = {}, std::string hint = {}) {
    found_.push_back({Severity::warning, std::move(code), std::move(text), std::move(fix), std::move(hint)});
  }

  bool is_paused() const { return status_.record.pause.has_value(); }

  void judge_what_was_stored() {
    if (auto behind = judge_cursor(status_.queue, status_.cursor, status_.newest))
      found_.push_back(std::move(*behind));
    for (const auto& sequence : status_.sequences_behind)
      found_.push_back(judge_sequence(sequence));
    for (auto& finding : judge_triggers(status_.triggers, status_.schema))
      found_.push_back(std::move(finding));
    for (auto& finding : judge_shadows(status_.shadows, status_.schema))
      found_.push_back(std::move(finding));
    for (auto& finding : judge_lost_messages(status_.lost, status_.schema))
      found_.push_back(std::move(finding));
    if (auto accounts = judge_accounts_without_token(status_.accounts_without_token, status_.schema))
      found_.push_back(std::move(*accounts));
  }

  void judge_home() {
    for (const auto& consumer : status_.foreign)
      warn("foreign_consumer", queue::foreign_consumer_text(consumer), status::end_session(consumer.pid));
    if (status_.home_problem.empty()) return;
    found_.push_back(
        {Severity::failure,
         "copy",
         fmt::format("nothing is sent from this database: {}. Consumers refuse to serve it",
                     status_.home_problem),
         {},
         "right for a copy that must mail nobody; mailroom adopt makes it the one that mails are sent from"});
  }

  void judge_pause() {
    if (auto paused = mailroom::health::judge_pause(status_)) found_.push_back(std::move(*paused));
  }

  void judge_thresholds() {
    const auto lag = status_.lag();
    const auto cause = cause_of_delay(status_);
    const auto help =
        cause.empty() ? ". Another instance of the collector's service shares the work" : ": " + cause;
    const auto fix = is_paused() ? status::resume_queue(status_.queue) : status::Fix();
    if (limits_.max_lag && lag > *limits_.max_lag) {
      fail("max_lag",
           fmt::format("the oldest token has waited for {}, longer than --max-lag {}{}",
                       status::age_text(*lag), format_duration(*limits_.max_lag), help),
           fix);
    }
    if (limits_.max_pending && status_.pending.total() > *limits_.max_pending) {
      fail("max_pending",
           fmt::format("{}, more than --max-pending {}{}", tokens_waiting(status_),
                       with_thousands(*limits_.max_pending), help),
           fix);
    }
  }

  void judge_dead() {
    for (const auto& batch : status_.dead) {
      warn("dead",
           fmt::format("batch {} ({}) was dead-lettered {} ago, after too many attempts, the last by {}",
                       with_thousands(batch.id), counted(batch.tokens, "token"), status::age_text(batch.age),
                       batch.claimed_by),
           status::replay_batch(status_.queue, batch.id, status_.schema));
    }
  }

  void judge_went_back() {
    if (!status_.went_back) return;
    const auto& back = *status_.went_back;
    warn(
        "went_back",
        fmt::format(
            "the database went back to an older state {} ago, by a restore or a failover: {} had claimed batch "
            "{}, and then the newest was {}. Accounts and tokens of the time between are gone, and "
            "mails may go out twice",
            status::age_text(back.age), back.actor, with_thousands(back.known), with_thousands(back.newest)),
        {},
        "mailroom reconcile --since 1d says what became of each token; mailroom resend --outcome expired,dead "
        "--since 1d --extend 15m mails those that nobody got. The warning ends with that, or after a day");
  }

  const status::QueueStatus& status_;
  const HealthLimits& limits_;
  std::vector<QueueFinding> found_;
};

}  // namespace

std::optional<QueueFinding> judge_pause(const status::QueueStatus& status) {
  if (!status.record.pause) return std::nullopt;
  const auto& pause = *status.record.pause;
  const bool holds_up = status.pending.total() > 0;
  return QueueFinding{
      holds_up ? Severity::failure : Severity::warning, "paused",
      fmt::format("{}, since the queue has been paused for {} by {}{}{}",
                  holds_up ? tokens_waiting(status) : "no token is emitted", status::age_text(pause.lasts),
                  pause.actor, pause.reason.empty() ? "" : ": ", pause.reason),
      status::resume_queue(status.queue)};
}

std::string tokens_waiting(const status::QueueStatus& status) {
  const auto total = status.pending.total();
  return fmt::format("{}{} {}", status.pending.estimated ? "~" : "", counted(total, "token"),
                     total == 1 ? "waits" : "wait");
}

Milliseconds silence_limit(Milliseconds poll_interval) {
  return std::chrono::seconds(30) + poll_interval;
}

std::vector<QueueFinding> judge_queue(const status::QueueStatus& status, const HealthLimits& limits) {
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

}  // namespace mailroom::health
