#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"

namespace mailroom::test {

/// When tokens arrive, ascending, since a virtual start.
using Arrivals = std::vector<std::chrono::microseconds>;

/// A kind of arrivals, in one random instance for each seed.
struct ArrivalKind {
  std::string name;
  std::string what;  ///< its rates
  Arrivals (*arrive)(std::uint64_t seed);
};

/// Constant, Poisson, a daily wave (a day in twenty minutes), and bursts of a thousand among lone tokens.
const std::vector<ArrivalKind>& arrival_kinds();

}  // namespace mailroom::test
