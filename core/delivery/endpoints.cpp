// Prefers the first endpoint, also as soon as a probe of it is due.

#include "delivery/endpoints.hpp"

#include <algorithm>
#include <stdexcept>

namespace mailroom {

Endpoints::Endpoints(const std::vector<std::string>& names, int in_flight, std::uint64_t seed) {
  for (const auto& name : names)
    endpoints_.emplace_back(name, in_flight, seed++);
}

Endpoints::Choice Endpoints::choose(std::size_t first, WallTime now) const {
  Choice choice;
  for (auto i = first; i < endpoints_.size(); ++i) {
    const auto leave = endpoints_[i].leave(now);
    if (leave == Endpoint::Leave::given) return {leave, i};
    if (leave == Endpoint::Leave::later) choice.leave = leave;
  }
  return choice;
}

const Endpoint& Endpoints::likely() const {
  const auto available =
      std::ranges::find_if(endpoints_, [](const auto& endpoint) { return !endpoint.breaker().is_open(); });
  return available == endpoints_.end() ? endpoints_.front() : *available;
}

bool Endpoints::is_limited(TimePoint now) const {
  return std::ranges::any_of(endpoints_, [&](const auto& endpoint) { return endpoint.is_limited(now); });
}

std::optional<std::chrono::seconds> Endpoints::time_to_admission(TimePoint now, WallTime wall) const {
  using Wait = std::optional<std::chrono::seconds>;
  std::vector<Wait> waits;
  for (const auto& endpoint : endpoints_)
    waits.push_back(endpoint.time_to_probe(wall));
  // An endpoint without a wait is less than any other.
  const auto least = *std::ranges::min_element(waits);
  const auto closed = std::chrono::ceil<std::chrono::seconds>(likely().closed_for(now));
  return closed > std::chrono::seconds(0) ? std::max(least, Wait(closed)) : least;
}

std::vector<Breaker> Endpoints::breakers() const {
  std::vector<Breaker> breakers;
  for (const auto& endpoint : endpoints_)
    breakers.push_back(endpoint.breaker());
  return breakers;
}

void Endpoints::set_breakers(const std::vector<Breaker>& seen, const std::vector<Breaker>& breakers,
                             TimePoint now) {
  if (seen.size() != endpoints_.size() || breakers.size() != endpoints_.size())
    throw std::invalid_argument("one breaker for each endpoint is needed");
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    auto& endpoint = endpoints_[i];
    const bool knows_better = endpoint.is_answering(now) && !seen[i].is_open();
    if (endpoint.breaker() == seen[i] && !knows_better) endpoint.set_breaker(breakers[i]);
  }
}

}  // namespace mailroom
