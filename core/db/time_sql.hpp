// Times on their way from SQL to C++, infinity included.
#pragma once

#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <string>

#include "base/moment.hpp"

namespace mailroom {

/// SQL for `time`, a timestamptz, in microseconds since 1970. An infinite time becomes one second outside the
/// years 0000 to 9999.
inline std::string microseconds_sql(const std::string& time) {
  return fmt::format(
      "(CASE {0} WHEN 'infinity' THEN 253402300800000000 WHEN '-infinity' THEN -62167219201000000 "
      "ELSE floor(extract(epoch FROM {0}) * 1000000)::bigint END)",
      time);
}

/// The moment that a field of a row holds as a number of `Unit` since 1970: seconds, or microseconds with
/// microseconds_sql(). See bounded_moment().
template <typename Unit, typename Field>
Moment moment_in(const Field& field) {
  return bounded_moment(Unit(field.template as<std::int64_t>()));
}

/// The same; nullopt for a null.
template <typename Unit, typename Field>
std::optional<Moment> optional_moment_in(const Field& field) {
  return field.is_null() ? std::nullopt : std::optional(moment_in<Unit>(field));
}

}  // namespace mailroom
