#include "simulation/waiting_tokens.hpp"

namespace mailroom {

void WaitingTokens::add(const SimulatedToken& token, TimePoint until) {
  if (tokens_.try_emplace(token.id, Entry{token, until}).second) moments_.emplace(until, token.id);
}

std::vector<SimulatedToken> WaitingTokens::take(const IdRange& range) {
  std::vector<SimulatedToken> taken;
  auto entry = tokens_.lower_bound(range.first);
  while (entry != tokens_.end() && entry->first < range.end) {
    taken.push_back(entry->second.token);
    moments_.erase({entry->second.until, entry->first});
    entry = tokens_.erase(entry);
  }
  return taken;
}

std::vector<SimulatedToken> WaitingTokens::take_until(TimePoint now) {
  std::vector<SimulatedToken> taken;
  while (!moments_.empty() && moments_.begin()->first <= now) {
    const auto entry = tokens_.find(moments_.begin()->second);
    taken.push_back(entry->second.token);
    tokens_.erase(entry);
    moments_.erase(moments_.begin());
  }
  return taken;
}

std::optional<TimePoint> WaitingTokens::earliest() const {
  if (moments_.empty()) return std::nullopt;
  return moments_.begin()->first;
}

}  // namespace mailroom
