// Keeps a command responsive while a pager does not read, and shows how far a long one is.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/output.hpp"
#include "process/stop_signal.hpp"

namespace mailroom::cmd {

/// Writes to a reader that may be slow, such as a pager, and responds to a request to stop.
class PatientOutput {
 public:
  /// `while_waiting` is called about once a second while the reader takes nothing.
  PatientOutput(Output& output, process::StopSignal& signal, std::function<void()> while_waiting)
      : output_(output), signal_(signal), while_waiting_(std::move(while_waiting)) {}

  /// Writes all of `bytes`, or a part if a stop is requested first. Throws like Output::write().
  void write(std::string_view bytes);

 private:
  bool wait_for_reader();

  Output& output_;
  process::StopSignal& signal_;
  std::function<void()> while_waiting_;
};

/// One line of `columns`, at least 39: a bar if `fraction` (0 to 1) is given, then as much of `text`, which
/// must be ASCII, as fits.
std::string render_progress(std::optional<double> fraction, const std::string& text, bool colour,
                            std::size_t columns);

/// A line on a terminal that is redrawn in place, and erased by the destructor.
class ProgressBar {
 public:
  /// Draws nothing if `output` is not a terminal or `quiet` is set. `output` must outlive this object.
  ProgressBar(Output& output, bool quiet, bool colour);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Draws at most 10 times a second.
  void show(std::optional<double> fraction, const std::string& text);
  void erase();

 private:
  Output& output_;
  bool visible_;
  bool colour_;
  std::size_t drawn_ = 0;  ///< columns
  TimePoint next_;
};

}  // namespace mailroom::cmd
