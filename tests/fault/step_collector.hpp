#pragma once

#include <string>
#include <vector>

namespace mailroom::test {

/// A point between two steps of a claim at which a collector can be killed.
struct Step {
  std::string name;
  int signal;       ///< with which it ends
  bool may_repeat;  ///< a batch has been written and is not acknowledged there
};

const std::vector<Step>& steps();

/// The collector itself, as a process of its own, with the database and the key from the environment: it
/// kills itself the `nth` time that it comes to the step; if that is called `stop …`, it stops itself
/// (SIGSTOP). Returns when it never comes there, or is asked to stop.
int run_step_collector(const std::string& step, int nth, int limit);

}  // namespace mailroom::test
