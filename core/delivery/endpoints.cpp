// Which of several relays or servers a message goes to: the first in their order that takes it.

#include <algorithm>
#include <stdexcept>

#include "delivery/endpoint.hpp"

namespace mailroom::delivery {

Endpoints::Endpoints(const std::vector<std::string>& names, int in_flight, std::optional<config::Rate> rate,
                     std::uint64_t seed) {
  for (const auto& name : names)
    endpoints_.emplace_back(name, in_flight, rate, seed++);
}

void Endpoints::answers_came() {
  for (auto& endpoint : endpoints_)
    endpoint.answers_came();
}

Endpoints::Choice Endpoints::choose(std::size_t first, WallTime now, const Likeness& likeness) const {
  Choice choice;
  for (auto i = first; i < endpoints_.size(); ++i) {
    const Choice here{endpoints_[i].leave(now, likeness), i};
    if (here.leave < choice.leave) choice = here;
    if (here.leave == Endpoint::Leave::given) break;
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

bool Endpoints::is_hampered(TimePoint now) const {
  return std::ranges::any_of(endpoints_, [&](const auto& endpoint) {
    return endpoint.is_limited(now) || endpoint.breaker().is_open();
  });
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

std::vector<Breaker> Endpoints::breakers(WallTime wall) const {
  std::vector<Breaker> breakers;
  for (const auto& endpoint : endpoints_)
    breakers.push_back(endpoint.shared(wall));
  return breakers;
}

void Endpoints::set_breakers(const std::vector<Breaker>& seen, const std::vector<Breaker>& breakers,
                             TimePoint now, WallTime wall) {
  if (seen.size() != endpoints_.size() || breakers.size() != endpoints_.size())
    throw std::invalid_argument("one breaker for each endpoint is needed");
  for (std::size_t i = 0; i < endpoints_.size(); ++i)
    endpoints_[i].share(seen[i], breakers[i], now, wall);
}

}  // namespace mailroom::delivery
