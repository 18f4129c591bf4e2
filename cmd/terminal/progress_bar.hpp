// Shows how far a long command is, on a terminal only.
#pragma once

#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/output.hpp"

namespace mailroom {

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

}  // namespace mailroom
