#pragma once

#include <fmt/format.h>
#include <string>

namespace mailroom {

/// SQL for `time`, a timestamptz, in microseconds since 1970. An infinite time becomes one second outside the
/// years 0000 to 9999.
inline std::string microseconds_sql(const std::string& time) {
  return fmt::format(
      "(CASE {0} WHEN 'infinity' THEN 253402300800000000 WHEN '-infinity' THEN -62167219201000000 "
      "ELSE floor(extract(epoch FROM {0}) * 1000000)::bigint END)",
      time);
}

}  // namespace mailroom
