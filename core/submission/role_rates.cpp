// A bucket of mails for each role, which fills again with time.

#include "submission/role_rates.hpp"

#include <algorithm>

namespace mailroom::submission {

bool RoleRates::take(const std::string& role, const config::Rate& rate, TimePoint now) {
  const auto most = static_cast<double>(rate.count);
  auto& left = left_.try_emplace(role, Left{most, now}).first->second;
  left.mails = std::min(most, left.mails + (now - left.at) / rate.gap());
  left.at = now;
  if (left.mails < 1) return false;
  left.mails -= 1;
  return true;
}

}  // namespace mailroom::submission
