#pragma once

#include <string>
#include <vector>

#include "bench/results.hpp"

namespace mailroom::bench {

/// What a figure, or the ratio of two, has to reach.
struct Target {
  std::string meaning;
  std::string figure;  ///< the name of a series
  std::string over{};  ///< of another one, for a ratio; the two of the same run are divided
  double asked = 0;
  bool at_least = true;  ///< else at the most
};

struct Verdict {
  const Target* target;
  Spread measured;
  bool reached = false;  ///< by the median
};

/// A verdict for each target whose figures were measured.
std::vector<Verdict> judge(const Results& results);

}  // namespace mailroom::bench
