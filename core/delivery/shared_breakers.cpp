// Exchanges breakers over the database, and reserves the next probe for one sink.

#include "delivery/shared_breakers.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/clock.hpp"

namespace mailroom {
namespace {

SinkState state_of(const std::string& name, const Breaker& breaker) {
  return {.name = name,
          .failures = breaker.failures,
          .since = breaker.since,
          .failed_at = breaker.opened_at,
          .probe_at = breaker.next_probe,
          .reason = breaker.why};
}

Breaker breaker_of(const std::string& name, const std::vector<SinkState>& states) {
  const auto state = std::ranges::find(states, name, &SinkState::name);
  if (state == states.end()) return {};
  return {.failures = state->failures,
          .since = state->since,
          .opened_at = state->failed_at,
          .next_probe = state->probe_at,
          .why = state->reason};
}

bool is_probe_due(const Breaker& breaker) {
  const auto now = wall_now();
  return breaker.is_open() && breaker.next_probe <= now;
}

}  // namespace

SharedBreakers::SharedBreakers(std::vector<std::string> names, Milliseconds probe_time)
    : names_(std::move(names)),
      probe_time_(probe_time),
      shared_(names_.size()),
      holds_probe_(names_.size()) {}

std::optional<std::vector<Breaker>> SharedBreakers::exchange(SinkBoard& board,
                                                             const std::vector<Breaker>& own, bool heard) {
  std::vector<SinkState> news;
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

std::string SharedBreakers::unavailability(const std::vector<Breaker>& own) const {
  std::string text;
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i].is_open())
      text += fmt::format("{}{} is unavailable: {}", text.empty() ? "" : "; ", names_[i], own[i].why);
  }
  return text;
}

}  // namespace mailroom
