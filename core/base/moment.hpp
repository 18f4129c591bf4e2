#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mailroom {

/// Reads a point in time, as seconds since 1970: a duration before `now` (`10m`, `2h30m`), or a date with or
/// without a time, `2026-11-21`, `2026-11-21T09:30`, `2026-11-21 09:30:15`, in UTC unless `Z` or an offset
/// such as `+02:00` follows. Nothing for anything else. (RFC 3339, with the seconds and the zone optional.)
std::optional<std::int64_t> parse_moment(std::string_view text, std::int64_t now);

/// `2026-11-21T09:30:15Z`; outside the years 0000 to 9999 `before the year 0` or `after the year 9999`.
std::string moment_text(std::int64_t seconds);

/// `2026-11-21T09:30:15Z`; nothing outside the years 0000 to 9999.
std::optional<std::string> date_text(std::int64_t seconds);

constexpr std::int64_t microseconds_a_second = 1'000'000;

/// What the database keeps is any bigint: of what lies outside the years 0000 to 9999 the nearest second that
/// does, so that it can be calculated with.
std::int64_t bounded_moment(std::int64_t seconds);

/// The microseconds since 1970 of bounded_moment().
std::int64_t to_microseconds(std::int64_t seconds);

/// `2026-11-21T09:30:15.266Z`, of microseconds since 1970; outside the years 0000 to 9999 as moment_text().
std::string precise_moment_text(std::int64_t microseconds);

/// `2026-11-21T09:30:15Z (in 4m)`, or `(4m ago)`; outside the years 0000 to 9999 no distance. `now` is within
/// them.
std::string moment_from(std::int64_t seconds, std::int64_t now);

}  // namespace mailroom
