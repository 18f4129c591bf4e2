// Rates such as 14/s or 1000/d, in which the budgets of queues and the limit per recipient are given.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace mailroom::config {

/// So many in each period, on average.
struct Rate {
  int count = 0;
  Milliseconds period{};

  /// The time between two, in seconds.
  std::chrono::duration<double> gap() const { return std::chrono::duration<double>(period) / count; }

  bool operator==(const Rate&) const = default;
};

/// Reads `14/s`, `0.38/s`, `100/min`, `5/h`, `1000/d` or `50000/30d`: a number from 1 to 1,000,000,000, a
/// slash, and a unit or a duration (see parse_duration) of at least 1ms. With a unit the number may have up
/// to six decimals: `0.38/s` is 38 in 100 s. Returns nullopt for anything else.
std::optional<Rate> parse_rate(std::string_view text);

/// The shortest text that parse_rate reads back to the same value: `14/s`, `0.38/s`, `50000/30d`.
std::string format_rate(const Rate& rate);

}  // namespace mailroom::config
