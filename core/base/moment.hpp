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

/// `2026-11-21T09:30:15Z`; outside the years 0000 to 9999 the seconds since 1970, `@253402300800`.
std::string moment_text(std::int64_t seconds);

constexpr std::int64_t microseconds_a_second = 1'000'000;

/// `2026-11-21T09:30:15.266Z`, of microseconds since 1970.
std::string precise_moment_text(std::int64_t microseconds);

/// `2026-11-21T09:30:15Z (in 4m)`, or `(4m ago)`; outside the years 0000 to 9999 no distance. `now` is within
/// them.
std::string moment_from(std::int64_t seconds, std::int64_t now);

}  // namespace mailroom
