#pragma once

#include <functional>
#include <string>
#include <vector>

#include "differential/play.hpp"

namespace mailroom::test {

struct Step {
  std::string text;
  std::function<std::string(Play&)> run;  ///< returns what it saw
};

/// Random operations on a queue; the same seed gives the same ones.
struct Steps {
  std::vector<Step> steps;
  bool exact = true;             ///< see Play
  bool checks_all_gaps = false;  ///< see DatabaseWorld
  unsigned senders = 0;          ///< a bit for each client that records outcomes
};

Steps draw_steps(unsigned seed);

}  // namespace mailroom::test
