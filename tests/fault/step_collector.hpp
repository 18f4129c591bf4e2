#pragma once

#include <string>
#include <vector>

namespace mailroom::test {

/// A point between two steps of a claim where a collector can be killed.
struct Step {
  std::string name;
  int signal;       ///< the signal that kills it
  bool may_repeat;  ///< a batch is written and not acknowledged at this point
};

const std::vector<Step>& steps();

/// Runs the collector in a separate process, with the database and the key from the environment. It kills
/// itself the `nth` time that it reaches `step`, or stops itself (SIGSTOP) if the name begins with `stop `.
/// Returns after a stop request.
int run_step_collector(const std::string& step, int nth, int limit);

}  // namespace mailroom::test
