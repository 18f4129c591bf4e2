// Who asks for how much.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "db/connection.hpp"

namespace mailroom::messages {

struct MailCount {
  std::int64_t messages = 0;
  std::int64_t recipients = 0;
};

/// What a role has asked for in a period.
struct RoleCount {
  std::string role{};
  MailCount all{};
  std::int64_t last_hour = 0;           ///< messages of the hour before the end of the period
  std::map<Moment, MailCount> hours{};  ///< by the hour of the clock, in UTC, without those of none
  Moment last{};                        ///< when it asked for the last one

  /// The most messages of one of the hours.
  std::int64_t busiest_hour() const;
};

/// Those who asked for messages from `since` on and before `until`, most first.
std::vector<RoleCount> count_by_role(db::Connection& connection, Moment since, Moment until);

/// Who asked for messages within an hour.
struct RecentRoles {
  bool is_known = true;     ///< false: the role may not read who asked
  bool is_partial = false;  ///< more than the newest 100,000, which are counted
  std::vector<RoleCount> roles{};
};

/// Costs the same however many messages there are.
RecentRoles read_recent_roles(db::Connection& connection);

}  // namespace mailroom::messages
