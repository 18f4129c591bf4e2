// What SIGINT, SIGTERM and SIGHUP do to a command that has no StopSignal.
#pragma once

#include <thread>

#include "base/threads.hpp"

namespace mailroom::process {

/// While it exists, the first of these signals has the server end the statements of this process, which then
/// fail with db::Interrupted, and ends the process if it does not end by itself within moments. A second one
/// ends it at once. A signal that is ignored, as under nohup, stays so. StopSignal takes its place for its
/// own time, apart from the signal that ends the process at once.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

 private:
  void watch();

  EventFd ended_;
  std::thread thread_;
};

/// In a signal handler: has the server end the statements, then ends the process with status 128 + `number`.
void end_at_once(int number);

}  // namespace mailroom::process
