// Which deliveries show that a relay fails or works, and how the delay between probes grows.

#include "delivery/breaker.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/clock.hpp"
#include "base/json.hpp"

namespace mailroom::delivery {
namespace {

constexpr Milliseconds shortest_delay{1000};
constexpr Milliseconds longest_delay{30'000};
/// A probe further in the future than this comes from a clock that has been set back since.
constexpr Milliseconds longest_probe{300'000};

/// Doubles with each further try.
Milliseconds growing_delay(Milliseconds shortest, Milliseconds longest, int tries, double chance) {
  auto delay = shortest;
  for (int i = 1; i < tries && delay < longest; ++i)
    delay = std::min(2 * delay, longest);
  return delay - std::chrono::duration_cast<Milliseconds>(delay * (0.2 * std::clamp(chance, 0.0, 1.0)));
}

bool shows_failure(const Answer& answer) {
  return answer.verdict == Verdict::unavailable || answer.about_everyone;
}

/// `553 5.7.1 Sender address rejected`
std::string reason_of(const Answer& answer) {
  if (answer.code == 0) return answer.reply;
  return fmt::format("{} {}{}", answer.code, answer.reply,
                     answer.about_everyone ? " (to one mail after another)" : "");
}

claim::SinkState state_of(const std::string& name, const Breaker& breaker) {
  // Of one that works, this is the newest.
  return {.name = name,
          .failures = breaker.failures,
          .since = breaker.since,
          .failed_at = breaker.is_open() ? breaker.opened_at : wall_now(),
          .probe_at = breaker.next_probe,
          .reason = breaker.why,
          .learnt = breaker.learnt,
          .seen = breaker.seen};
}

Breaker breaker_of(const std::string& name, const std::vector<claim::SinkState>& states) {
  const auto state = std::ranges::find(states, name, &claim::SinkState::name);
  if (state == states.end()) return {};
  // As this program writes it, so that it can be compared.
  const auto learnt = state->learnt.empty() ? "" : json_text(parse_json(state->learnt));
  if (state->failures == 0) return {.learnt = learnt, .seen = learnt};
  return {.failures = state->failures,
          .since = state->since,
          .opened_at = state->failed_at,
          .next_probe = state->probe_at,
          .why = state->reason,
          .learnt = learnt,
          .seen = learnt};
}

bool is_probe_due(const Breaker& breaker) {
  const auto now = wall_now();
  return breaker.is_open() && breaker.next_probe <= now;
}

}  // namespace

Milliseconds breaker_delay(int failures, double chance) {
  return growing_delay(shortest_delay, longest_delay, failures, chance);
}

Milliseconds resend_delay(int tries, double chance) {
  return growing_delay(Milliseconds(250), Milliseconds(5000), tries, chance);
}

std::optional<Breaker> let_through(const Breaker& breaker, WallTime now, Milliseconds probe_time) {
  if (!breaker.is_open()) return breaker;
  if (now < breaker.next_probe && breaker.next_probe - now <= longest_probe) return std::nullopt;
  auto probed = breaker;
  probed.next_probe = now + std::min(probe_time, longest_probe);
  return probed;
}

Breaker after_answer(const Breaker& breaker, const Answer& answer, WallTime began, WallTime now,
                     double chance) {
  if (answer.shows_life()) return {};
  auto after = breaker;
  const bool is_old = breaker.is_open() && began < breaker.opened_at;
  if (is_old) return after;
  if (!shows_failure(answer)) {
    // The probe said nothing, so the next mail is one.
    if (after.is_open()) after.next_probe = now;
    return after;
  }
  ++after.failures;
  if (!breaker.is_open()) after.since = now;
  after.opened_at = now;
  after.next_probe = now + breaker_delay(after.failures, chance);
  after.why = reason_of(answer);
  return after;
}

std::optional<std::chrono::seconds> time_to_probe(const Breaker& breaker, WallTime now) {
  if (!breaker.is_open()) return std::nullopt;
  constexpr std::chrono::seconds soon{1};
  // No delay is that long, so a mail has been let through since.
  if (breaker.next_probe - breaker.opened_at > breaker_delay(breaker.failures, 0)) return soon;
  return std::max(std::chrono::ceil<std::chrono::seconds>(breaker.next_probe - now), soon);
}

SharedBreakers::SharedBreakers(std::vector<std::string> names, Milliseconds probe_time)
    : names_(std::move(names)),
      probe_time_(probe_time),
      shared_(names_.size()),
      holds_probe_(names_.size()) {}

std::optional<std::vector<Breaker>> SharedBreakers::exchange(claim::SinkBoard& board,
                                                             const std::vector<Breaker>& own, bool heard) {
  std::vector<claim::SinkState> news;
  bool may_probe = false;
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i] != shared_[i]) {
      news.push_back(state_of(names_[i], own[i]));
      holds_probe_[i] = false;
    }
    may_probe = may_probe || (is_probe_due(own[i]) && !holds_probe_[i]);
  }
  if (news.empty() && !heard && !may_probe) return std::nullopt;
  const auto states = board.share(news, names_, may_probe ? std::optional(probe_time_) : std::nullopt);
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const auto known = breaker_of(names_[i], states);
    // To others the probe is taken. It stays this sink's until something has used it.
    if (holds_probe_[i] && known.opened_at == own[i].opened_at) continue;
    holds_probe_[i] = may_probe && is_probe_due(known);
    shared_[i] = known;
  }
  return shared_;
}

void SharedBreakers::give_back(claim::SinkBoard& board, const std::vector<Breaker>& own) {
  exchange(board, own, false);
  std::vector<claim::SinkState> unused;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (holds_probe_[i]) unused.push_back(state_of(names_[i], shared_[i]));
    holds_probe_[i] = false;
  }
  if (!unused.empty()) board.share(unused, names_, std::nullopt);
}

std::string SharedBreakers::unavailability(const std::vector<Breaker>& own) const {
  std::string text;
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i].is_open())
      text += fmt::format("{}{} is unavailable: {}", text.empty() ? "" : "; ", names_[i], own[i].why);
  }
  return text;
}

}  // namespace mailroom::delivery
