// Who asks for how much.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "db/connection.hpp"

namespace mailroom::messages {

/// What a role has asked for in a period.
struct RoleCount {
  std::string role{};
  std::int64_t messages = 0;
  std::int64_t recipients = 0;
  std::int64_t last_hour = 0;     ///< messages of the hour before the end of the period
  std::int64_t busiest_hour = 0;  ///< the most messages of an hour of the clock, in UTC
  Moment last{};                  ///< when it asked for the last one
};

/// Those who asked for messages from `since` on and before `until`, most first.
std::vector<RoleCount> count_by_role(db::Connection& connection, Moment since, Moment until);

}  // namespace mailroom::messages
