// The rules about tokens that expire before they are mailed, and what keeps mails from people.

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/wording.hpp"
#include "health/queue_health.hpp"
#include "status/fix_commands.hpp"

namespace mailroom::health {
namespace {

/// How fast a queue is mailed: at most so many tokens a second, and so many at once.
struct Pace {
  double rate = 0;
  double at_once = 0;
  std::string text{};  ///< `its rate of 2/s`
};

/// The lowest rate that the queue keeps.
std::optional<Pace> configured_pace(const queue::QueueRecord& queue) {
  std::optional<Pace> lowest;
  for (const auto& budget : queue.budgets) {
    const auto rate = 1 / budget.paced.rate.gap().count();
    if (!lowest || rate < lowest->rate)
      lowest = Pace{rate, static_cast<double>(budget.left()),
                    "its rate of " + config::format_rate(budget.paced.rate)};
  }
  return lowest;
}

/// Consumers that have had work for some time show how fast they are.
std::optional<Pace> measured_pace(const status::QueueStatus& status) {
  const auto rate = status.emissions.last_rate(status.lag().value_or(Milliseconds{0}));
  if (!rate) return std::nullopt;
  return Pace{rate->per_second, 0,
              fmt::format("the {:.1f}/s of the last {}", rate->per_second, status::age_text(rate->over))};
}

std::optional<Pace> pace_of(const status::QueueStatus& status) {
  const auto configured = configured_pace(status.record);
  auto measured = measured_pace(status);
  if (!configured || (measured && measured->rate < configured->rate)) return measured;
  return configured;
}

/// Those that live for at most x seconds come first, and the pace allows so many of them in that time.
std::int64_t expiring_at(const Pace& pace, const status::PendingTokens& pending) {
  double ahead = 0;
  double expiring = 0;
  for (const auto& [life, tokens] : pending.waiting_by_life) {
    ahead += tokens;
    expiring = std::max(expiring, ahead - pace.at_once - pace.rate * static_cast<double>(life));
  }
  return static_cast<std::int64_t>(std::floor(expiring));
}

/// Selects all tokens whose age is at most `oldest`: `2h`, `22d`.
std::string since_text(Milliseconds oldest) {
  constexpr std::chrono::hours least{2};
  constexpr std::chrono::hours most{48};
  const auto hours = std::max(std::chrono::ceil<std::chrono::hours>(oldest + std::chrono::minutes(5)), least);
  if (hours <= most) return fmt::format("{}h", hours.count());
  return fmt::format("{}d", std::chrono::ceil<std::chrono::days>(hours).count());
}

std::optional<QueueFinding> judge_expired(const status::QueueStatus& status) {
  // Afterwards it is news, and no alarm.
  constexpr std::chrono::minutes recent{10};
  const auto& expired = status.expired;
  if (expired.tokens == 0 || !expired.last) return std::nullopt;
  const auto cause = cause_of_delay(status, *expired.last);
  return QueueFinding{
      *expired.last < recent ? Severity::failure : Severity::warning,
      "expired_unsent",
      fmt::format("{} expired unsent within the last hour, the last {} ago: {}",
                  counted(expired.tokens, "token"), status::age_text(*expired.last),
                  cause.empty() ? "they were not accepted in time" : cause),
      {},
      fmt::format(
          "mailroom resend --outcome expired --since {} --extend 15m --dry-run shows who would be mailed",
          since_text(expired.oldest.value_or(Milliseconds{0})))};
}

/// Where no rate of the queue limits it. Lines of collect are as fast as their reader.
std::string hint_for_pace(const status::QueueStatus& status, const HealthLimits& limits) {
  const auto sender = std::ranges::find_if(status.collectors, [](const auto& collector) {
    return collector.session.application.starts_with("mailroom send");
  });
  if (sender == status.collectors.end()) return "another instance of the service shares the work";
  const auto process = status::collector_process(sender->session.application);
  return fmt::format(
      "raise send.connections{} if the relay takes more, then systemctl reload 'mailroom-send@*', or kill -HUP {} "
      "without systemd; send.rate limits a sender too, and another instance shares the work",
      limits.send_connections ? fmt::format(", {} in the configuration here,", *limits.send_connections) : "",
      process ? process->pid + " on " + process->host : "PID");
}

std::optional<QueueFinding> judge_forecast(const status::QueueStatus& status, const HealthLimits& limits) {
  const auto expiring = forecast_expiring(status);
  if (!expiring || *expiring == 0) return std::nullopt;
  const auto pace = *pace_of(status);
  const auto& by_life = status.pending.waiting_by_life;
  const auto needed =
      std::chrono::seconds(std::llround(static_cast<double>(status.pending.waiting) / pace.rate));
  const bool is_configured = pace.text.starts_with("its");
  return QueueFinding{
      Severity::failure,
      "will_expire",
      fmt::format(
          "at least {} of {} that wait will expire before {} mailed: {} would take {}, and the longest "
          "of them lives for {}",
          with_thousands(*expiring), counted(status.pending.waiting, "token"),
          *expiring == 1 ? "it is" : "they are", pace.text, status::age_text(needed),
          status::age_text(std::chrono::seconds(by_life.rbegin()->first))),
      {},
      fmt::format(
          "{}. For those that expire: mailroom resend --outcome expired --since {} --extend 15m --dry-run "
          "shows who would be mailed",
          is_configured
              ? fmt::format("raise the rate, if the provider takes more: mailroom queue set {} --rate RATE",
                            shell_word(status.queue))
              : hint_for_pace(status, limits),
          since_text(status.lag().value_or(Milliseconds{0})))};
}

}  // namespace

std::string cause_of_delay(const status::QueueStatus& status, Milliseconds lasts) {
  const auto& deliveries = status.deliveries;
  if (status.record.pause && status.record.pause->lasts >= lasts) return "the queue is paused";
  const bool was_served = lasts > Milliseconds{0} && status.last_claim && status.last_claim->age <= lasts;
  if (!status.on_standby && status.collectors.empty() && !was_served)
    return status.elsewhere.empty() ? "no collector is connected"
                                    : "no connected collector serves this queue";
  if (!deliveries.sinks.empty() && deliveries.sinks.front().lasts >= lasts)
    return deliveries.sinks.front().name + " is unavailable";
  if (deliveries.refused.deferred >= 3)
    return "the receiver accepts none, and says " + deliveries.refused.last;
  if (status.record.wait_for(1) > Milliseconds{0}) return "its rate allows no more";
  return {};
}

std::optional<std::int64_t> forecast_expiring(const status::QueueStatus& status) {
  if (status.record.pause || status.pending.waiting_by_life.empty()) return std::nullopt;
  if (!status.on_standby && status.collectors.empty()) return std::nullopt;
  const auto pace = pace_of(status);
  return pace ? std::optional(expiring_at(*pace, status.pending)) : std::nullopt;
}

std::vector<QueueFinding> judge_expiry(const status::QueueStatus& status, const HealthLimits& limits) {
  std::vector<QueueFinding> found;
  if (auto expired = judge_expired(status)) found.push_back(std::move(*expired));
  if (auto forecast = judge_forecast(status, limits)) found.push_back(std::move(*forecast));
  return found;
}

}  // namespace mailroom::health
