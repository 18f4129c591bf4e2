#pragma once

#include <string>
#include <vector>

#include "bench/results.hpp"

namespace mailroom::bench {

/// The limit for a figure or for the ratio of two.
struct Target {
  std::string meaning;
  std::string figure;  ///< the name of a series
  std::string over{};  ///< the divisor's name, for a ratio; divided run by run
  double asked = 0;
  bool at_least = true;  ///< otherwise at most
};

struct Verdict {
  const Target* target;
  Spread measured;
  bool reached = false;  ///< by the median
};

/// Returns a verdict for each target whose figures were measured.
std::vector<Verdict> judge(const Results& results);

}  // namespace mailroom::bench
