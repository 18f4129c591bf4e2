#pragma once

#include <functional>
#include <string>

namespace mailroom::test {

/// What to play of the scenarios.
struct Interleavings {
  bool list = false;  ///< only the names, and what each has to find with self_check
  bool is_short = false;
  bool self_check = false;                              ///< with each sabotage until an order shows it
  std::function<bool(const std::string&)> is_wanted{};  ///< of the name of a scenario, or of a sabotage
};

/// Plays every order of the steps of each scenario, with a crash at each point. Prints a table, and the trace
/// of each order that breaks a promise; returns the exit status.
int run_interleavings(const Interleavings& wanted);

}  // namespace mailroom::test
