// Redraws one line in place, and leaves the last column free.

#include "cmd/terminal/progress_bar.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <fmt/format.h>
#include <poll.h>
#include <utility>

#include "base/error.hpp"

namespace mailroom::cmd {
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

void PatientOutput::write(std::string_view bytes) {
  // A pipe that is ready for writing takes PIPE_BUF bytes without blocking.
  while (!bytes.empty() && wait_for_reader()) {
    const auto part = bytes.substr(0, PIPE_BUF);
    output_.write(part);
    bytes.remove_prefix(part.size());
  }
}

bool PatientOutput::wait_for_reader() {
  for (;;) {
    // After a stop request, only what can be written without waiting is written.
    const bool stopping = signal_.requested();
    std::array<pollfd, 2> watched{{{output_.fd(), POLLOUT, 0}, {signal_.fd(), POLLIN, 0}}};
    const int ready = poll(watched.data(), watched.size(), stopping ? 0 : 1000);
    if (watched[0].revents != 0) return true;
    if (stopping) return false;
    if (watched[1].revents != 0) signal_.drain();
    if (ready == 0) while_waiting_();
  }
}

}  // namespace mailroom::cmd
