// Wall times of time zones, by the zone files of the system (RFC 8536).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"

namespace mailroom::resend_api {

/// Seconds of a wall clock since 1970-01-01 00:00 on it.
using LocalTime = std::chrono::local_time<std::chrono::microseconds>;

class TimeZone {
 public:
  /// `Europe/Vienna`, `UTC`; nullopt if the system has no such zone.
  static std::optional<TimeZone> find(std::string_view name);
  /// So many seconds east of Greenwich.
  static TimeZone fixed(std::chrono::seconds offset);

  /// The moment of a wall time: of two the first; one that a change of clocks skips moves forward.
  Moment moment_of(LocalTime wall) const;
  LocalTime wall_of(Moment moment) const;

 private:
  struct Change {
    std::chrono::sys_seconds at{};
    std::chrono::seconds offset{};
  };

  std::chrono::seconds offset_at(std::chrono::sys_seconds moment) const;

  std::chrono::seconds first_{};
  std::vector<Change> changes_{};
};

}  // namespace mailroom::resend_api
