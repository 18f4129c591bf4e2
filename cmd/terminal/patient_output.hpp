// Keeps a command responsive while a pager does not read.
#pragma once

#include <functional>
#include <string_view>

#include "base/output.hpp"
#include "process/stop_signal.hpp"

namespace mailroom {

/// Writes to a reader that may be slow, such as a pager, and responds to a request to stop.
class PatientOutput {
 public:
  /// `while_waiting` is called about once a second while the reader takes nothing.
  PatientOutput(Output& output, StopSignal& signal, std::function<void()> while_waiting)
      : output_(output), signal_(signal), while_waiting_(std::move(while_waiting)) {}

  /// Writes all of `bytes`, or a part if a stop is requested first. Throws like Output::write().
  void write(std::string_view bytes);

 private:
  bool wait_for_reader();

  Output& output_;
  StopSignal& signal_;
  std::function<void()> while_waiting_;
};

}  // namespace mailroom
