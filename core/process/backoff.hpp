// How long to wait before the next attempt to connect.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

#include "base/clock.hpp"

namespace mailroom {

/// Exponential back-off with jitter: 50 ms doubling to 1 s. Each delay is drawn from the upper half of its
/// bound, so that many collectors do not retry at the same instant.
class Backoff {
 public:
  explicit Backoff(std::uint64_t seed) : random_(seed) {}

  Milliseconds next() {
    std::uniform_int_distribution<Milliseconds::rep> jitter(bound_.count() / 2, bound_.count());
    bound_ = std::min(bound_ * 2, longest);
    return Milliseconds{jitter(random_)};
  }
  void reset() { bound_ = shortest; }

 private:
  static constexpr Milliseconds shortest{50};
  static constexpr Milliseconds longest{1000};

  std::mt19937_64 random_;
  Milliseconds bound_ = shortest;
};

}  // namespace mailroom
