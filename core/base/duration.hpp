// Durations as options and configuration write them, and as output shows them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace mailroom {

/// Reads `250ms`, `5s`, `4m30s`, `1h`, `30d`, or a bare integer of milliseconds. Units run from large to
/// small, each at most once; no sign, fraction or white space. Returns nullopt for anything else and above
/// 100 years.
std::optional<Milliseconds> parse_duration(std::string_view text);

/// The shortest text that parse_duration reads back to the same value: `4m30s`, `0s`.
std::string format_duration(Milliseconds duration);

}  // namespace mailroom
