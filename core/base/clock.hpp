// Times: the clock as an interface that a test can replace, durations, and points in time, with their text.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mailroom {

using Milliseconds = std::chrono::milliseconds;
/// Time of day, so that processes can share it.
using WallTime = std::chrono::sys_time<Milliseconds>;
using TimePoint = std::chrono::steady_clock::time_point;

/// Monotonic time, where no test needs to control it.
inline TimePoint steady_now() {
  return std::chrono::steady_clock::now();
}

/// The time of day, in whole milliseconds.
inline WallTime wall_now() {
  return std::chrono::floor<Milliseconds>(std::chrono::system_clock::now());
}

/// Monotonic time, behind an interface so that tests can control it.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
};

/// The system's monotonic clock.
class SteadyClock final : public Clock {
 public:
  static const SteadyClock& only() {
    static const SteadyClock clock;
    return clock;
  }
  TimePoint now() const override { return steady_now(); }
};

/// A point in time. Those of tokens and accounts have whole seconds.
using Moment = std::chrono::sys_time<std::chrono::microseconds>;

// A date has a four-digit year only from year_0 to before year_10000.
constexpr Moment year_0 = std::chrono::sys_days(std::chrono::year(0) / 1 / 1);
constexpr Moment year_10000 = std::chrono::sys_days(std::chrono::year(10'000) / 1 / 1);

/// The moment `since_1970`, clamped to at most one second outside the years 0000 to 9999, so that arithmetic
/// cannot overflow: the database stores any bigint.
template <typename Duration>
constexpr Moment bounded_moment(Duration since_1970) {
  constexpr Duration least(std::chrono::floor<Duration>(year_0.time_since_epoch() - std::chrono::seconds(1)));
  constexpr Duration most(std::chrono::floor<Duration>(year_10000.time_since_epoch()));
  return Moment(std::clamp(since_1970, least, most));
}

/// Whole seconds since 1970, as the columns of tokens hold them.
constexpr std::int64_t in_seconds(Moment moment) {
  return std::chrono::floor<std::chrono::seconds>(moment.time_since_epoch()).count();
}

/// Reads a point in time: a duration before `now` (`10m`, `2h30m`), or a date with or without a time
/// (RFC 3339 with optional seconds and zone): `2026-11-21`, `2026-11-21T09:30`, `2026-11-21 09:30:15`, in UTC
/// unless an offset such as `+02:00` follows. Returns nullopt for anything else.
std::optional<Moment> parse_moment(std::string_view text, Moment now);

/// `2026-11-21T09:30:15Z`; outside the years 0000 to 9999, `before the year 0` or `after the year 9999`.
std::string moment_text(Moment moment);

/// `2026-11-21T09:30:15Z`; nullopt outside the years 0000 to 9999.
std::optional<std::string> date_text(Moment moment);

/// `2026-11-21T09:30:15.266Z`; outside the years 0000 to 9999, as moment_text().
std::string precise_moment_text(Moment moment);

/// `2026-11-21T09:30:15Z (in 4m)` or `(4m ago)`; without the distance outside the years 0000 to 9999. `now`
/// must be within these years.
std::string moment_from(Moment moment, Moment now);

/// Reads `250ms`, `5s`, `4m30s`, `1h`, `30d`, or a bare integer of milliseconds. Units run from large to
/// small, each at most once; no sign, fraction or white space. Returns nullopt for anything else and above
/// 100 years.
std::optional<Milliseconds> parse_duration(std::string_view text);

/// The shortest text that parse_duration reads back to the same value: `4m30s`, `0s`.
std::string format_duration(Milliseconds duration);

}  // namespace mailroom
