// Doubles the time between two lines of the log, up to ten minutes.

#include "process/retry.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"

namespace mailroom::process {
namespace {

constexpr Milliseconds first_interval{10'000};
constexpr Milliseconds longest_interval{600'000};

}  // namespace

void RetryLog::failed(std::string_view message, const std::string& reason, TimePoint now) {
  if (!failing_since_) {
    failing_since_ = now;
    next_line_ = first_interval;
    told_ = true;
    return log_.warn(message, {{"reason", reason}});
  }
  const auto age = *failing_for(now);
  if (age < next_line_) return;
  told_ = true;
  log_.warn("still trying",
            {{"for", format_duration(std::chrono::floor<std::chrono::seconds>(age))}, {"reason", reason}});
  // 10, 20, 40 s and so on, then every 10 min.
  while (next_line_ <= age)
    next_line_ += std::min(next_line_, longest_interval);
}

bool RetryLog::is_news() {
  return std::exchange(told_, false) || !failing_since_;
}

std::optional<Milliseconds> RetryLog::failing_for(TimePoint now) const {
  if (!failing_since_) return std::nullopt;
  return std::chrono::duration_cast<Milliseconds>(now - *failing_since_);
}

}  // namespace mailroom::process
