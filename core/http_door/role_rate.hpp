// How many mails a role may still ask for, as its clients are told with each answer.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.hpp"

namespace mailroom::http_door {

/// A limit of the database, which leaves the role least: `mails` in `period`, at once if it has asked for
/// none.
struct RoleRate {
  std::int64_t mails = 0;
  std::chrono::microseconds period{};
  TimePoint used_until{};  ///< what it has asked for is forgotten then
};

/// `limit` after a request that was refused, and may be repeated after `wait`.
RoleRate used_up(RoleRate limit, TimePoint now, std::chrono::seconds wait);

/// The headers ratelimit-…, whose numbers are whole: SDKs parse integers.
std::string rate_headers(const RoleRate& limit, TimePoint now);

}  // namespace mailroom::http_door
