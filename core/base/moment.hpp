#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mailroom {

/// Reads a point in time, in seconds since 1970: a duration before `now` (`10m`, `2h30m`), or a date with or
/// without a time (RFC 3339 with optional seconds and zone): `2026-11-21`, `2026-11-21T09:30`,
/// `2026-11-21 09:30:15`, in UTC unless an offset such as `+02:00` follows. Returns nullopt for anything
/// else.
std::optional<std::int64_t> parse_moment(std::string_view text, std::int64_t now);

/// `2026-11-21T09:30:15Z`; outside the years 0000 to 9999, `before the year 0` or `after the year 9999`.
std::string moment_text(std::int64_t seconds);

/// `2026-11-21T09:30:15Z`; nullopt outside the years 0000 to 9999.
std::optional<std::string> date_text(std::int64_t seconds);

constexpr std::int64_t microseconds_a_second = 1'000'000;

/// `seconds`, clamped to at most one second outside the years 0000 to 9999, so that arithmetic cannot
/// overflow: the database stores any bigint.
std::int64_t bounded_moment(std::int64_t seconds);

/// bounded_moment() in microseconds since 1970.
std::int64_t to_microseconds(std::int64_t seconds);

/// `2026-11-21T09:30:15.266Z` from microseconds since 1970; outside the years 0000 to 9999, as moment_text().
std::string precise_moment_text(std::int64_t microseconds);

/// `2026-11-21T09:30:15Z (in 4m)` or `(4m ago)`; without the distance outside the years 0000 to 9999. `now`
/// must be within these years.
std::string moment_from(std::int64_t seconds, std::int64_t now);

}  // namespace mailroom
