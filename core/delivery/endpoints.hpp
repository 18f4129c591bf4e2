// The endpoints of a carrier in their order: which one the next message goes to, and when.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "delivery/endpoint.hpp"

namespace mailroom {

/// A message goes to the first endpoint that is available. Pure: takes times.
class Endpoints {
 public:
  Endpoints(const std::vector<std::string>& names, int in_flight, std::uint64_t seed);

  struct Choice {
    Endpoint::Leave leave = Endpoint::Leave::none;
    std::size_t place = 0;
  };
  /// The first from place `first` on that takes a message. `later` if none does, and one is being probed.
  Choice choose(std::size_t first, WallTime now) const;

  Endpoint& operator[](std::size_t place) { return endpoints_[place]; }
  const Endpoint& front() const { return endpoints_.front(); }
  std::size_t size() const { return endpoints_.size(); }
  /// Where the next message goes, unless that turns out to be unavailable.
  const Endpoint& likely() const;
  bool is_limited(TimePoint now) const;
  /// The time until a message is taken; nullopt if one is now.
  std::optional<std::chrono::seconds> time_to_admission(TimePoint now, WallTime wall) const;

  std::vector<Breaker> breakers() const;
  /// See Dispatcher::set_breakers().
  void set_breakers(const std::vector<Breaker>& seen, const std::vector<Breaker>& breakers, TimePoint now);

 private:
  std::vector<Endpoint> endpoints_;
};

}  // namespace mailroom
