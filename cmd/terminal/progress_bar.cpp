// Redraws one line in place, and leaves the last column free.

#include "cmd/terminal/progress_bar.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/error.hpp"

namespace mailroom {
namespace {

constexpr std::size_t bar_width = 20;
constexpr Milliseconds redraw_interval{100};

}  // namespace

std::string render_progress(std::optional<double> fraction, const std::string& text, bool colour,
                            std::size_t columns) {
  if (!fraction) return fmt::format("{:<{}}", text.substr(0, columns), columns);
  const double part = std::clamp(*fraction, 0.0, 1.0);
  const auto full = static_cast<std::size_t>(part * static_cast<double>(bar_width));
  const auto start = colour ? "\x1b[32m" : "";
  const auto end = colour ? "\x1b[0m" : "";
  const auto label = fmt::format(" {:3.0f}% {}", part * 100, text);
  const auto room = columns - bar_width - 2;
  return fmt::format("[{}{}{}{}]{:<{}}", start, std::string(full, '#'), end,
                     std::string(bar_width - full, '.'), label.substr(0, room), room);
}

ProgressBar::ProgressBar(Output& output, bool quiet, bool colour)
    : output_(output), visible_(!quiet && output.is_terminal()), colour_(colour) {}

ProgressBar::~ProgressBar() {
  try {
    erase();
  } catch (const Error&) {
    // The terminal is gone, and the line with it.
    visible_ = false;
  }
}

void ProgressBar::show(std::optional<double> fraction, const std::string& text) {
  const auto now = steady_now();
  if (!visible_ || now < next_) return;
  // The last column stays free: some terminals begin a new line there.
  const auto columns = output_.width() - 1;
  output_.write("\r" + render_progress(fraction, text, colour_, columns));
  drawn_ = columns;
  next_ = now + redraw_interval;
}

void ProgressBar::erase() {
  if (drawn_ == 0) return;
  output_.write("\r" + std::string(std::exchange(drawn_, 0), ' ') + "\r");
}

}  // namespace mailroom
