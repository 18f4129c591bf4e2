#pragma once

#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/output.hpp"

namespace mailroom {

/// One line of `columns`, at least 39: a bar when `fraction` (0 to 1) is given, then as much of `text`,
/// which is ASCII, as fits.
std::string render_progress(std::optional<double> fraction, const std::string& text, bool colour,
                            std::size_t columns);

/// A line on a terminal that is drawn over and over, and gone when this is. Silent where nobody looks.
class ProgressBar {
 public:
  /// Draws nothing when `output`, which outlives this, is no terminal or `quiet`.
  ProgressBar(Output& output, bool quiet, bool colour);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Draws, but at most 10 times a second.
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
