#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/log.hpp"

namespace mailroom {

/// Says of attempts that fail one after the other what is worth a line: the first one, and then less and less
/// often that it is still tried.
class RetryLog {
 public:
  explicit RetryLog(Log& log) : log_(log) {}

  /// An attempt has failed, because of `reason`: a warning, `message` for the first.
  void failed(std::string_view message, const std::string& reason, TimePoint now);
  /// An attempt went well so far. True if that is worth a line: nothing failed before, or there was a line
  /// that said so since the last time.
  bool is_news();
  /// What was tried works again: the next failure is a first one.
  void worked() { failing_since_.reset(); }

  /// How long it has failed; nothing while it works.
  std::optional<Milliseconds> failing_for(TimePoint now) const;

 private:
  Log& log_;
  std::optional<TimePoint> failing_since_;
  Milliseconds next_line_{};
  bool told_ = false;
};

}  // namespace mailroom
