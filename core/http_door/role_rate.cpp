// The generic cell rate algorithm, as mailroom_keep_limits() has it: each mail takes its part of the period.

#include "http_door/role_rate.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace mailroom::http_door {
namespace {

using std::chrono::microseconds;

/// The part of the period that is taken.
microseconds used_of(const RoleRate& limit, TimePoint now) {
  return std::clamp(std::chrono::ceil<microseconds>(limit.used_until - now), microseconds(0), limit.period);
}

}  // namespace

RoleRate used_up(RoleRate limit, TimePoint now, std::chrono::seconds wait) {
  limit.used_until = now + std::max(limit.period - limit.period / limit.mails + wait, used_of(limit, now));
  return limit;
}

std::string rate_headers(const RoleRate& limit, TimePoint now) {
  const auto used = used_of(limit, now);
  const auto part =
      static_cast<double>((limit.period - used).count()) / static_cast<double>(limit.period.count());
  const auto left = static_cast<std::int64_t>(part * static_cast<double>(limit.mails) + 1e-6);
  return fmt::format(
      "ratelimit-limit: {0}\r\nratelimit-remaining: {1}\r\nratelimit-reset: {2}\r\nratelimit-policy: {0};w={3}\r\n",
      limit.mails, left, std::chrono::ceil<std::chrono::seconds>(used).count(),
      std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::seconds>(limit.period).count()));
}

}  // namespace mailroom::http_door
