#pragma once

#include <functional>
#include <string_view>

#include "base/output.hpp"
#include "base/stop_signal.hpp"

namespace mailroom {

/// Writes to a reader who may be slow, as one who pages through a stream is, without missing a request to
/// stop.
class PatientOutput {
 public:
  /// `while_waiting` is called about every second as long as the reader takes nothing.
  PatientOutput(Output& output, StopSignal& signal, std::function<void()> while_waiting)
      : output_(output), signal_(signal), while_waiting_(std::move(while_waiting)) {}

  /// Writes all of `bytes`, less if a stop is requested before it is taken. Throws as Output::write() does.
  void write(std::string_view bytes);

 private:
  bool wait_for_reader();

  Output& output_;
  StopSignal& signal_;
  std::function<void()> while_waiting_;
};

}  // namespace mailroom
