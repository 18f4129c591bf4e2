// Binds a list as one parameter: = ANY ($1::bigint[]).
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>
#include <vector>

namespace mailroom {

/// PostgreSQL's text of an array, for a bound value. Strings must not need quotes.
template <typename T>
std::string array_text(const std::vector<T>& values) {
  return fmt::format("{{{}}}", fmt::join(values, ","));
}

}  // namespace mailroom
