#pragma once

#include <optional>
#include <string>
#include <vector>

#include "differential/steps.hpp"

namespace mailroom::test {

/// What a step of a play shows.
struct Observation {
  std::string reply;
  std::string state;

  bool operator==(const Observation&) const = default;
};
using Trace = std::vector<Observation>;

/// Plays the steps in a world until the first observation that differs from `expected`; all if it is empty.
Trace play(const Steps& steps, QueueWorld& world, const Trace& expected = {});

/// The steps up to the first at which the traces differ, which are the fewest that show it, and both
/// observations; empty if there is none. A trace may be shorter than the play.
std::string difference(const Steps& steps, const std::string& name, const Trace& trace,
                       const std::string& other_name, const Trace& other);

}  // namespace mailroom::test
