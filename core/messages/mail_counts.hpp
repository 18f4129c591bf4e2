// How many mails there were in a period, and what became of them: by role, action, domain, profile and day.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "db/connection.hpp"

namespace mailroom::messages {

/// What mails are counted by.
enum class CountedBy { role, action, domain, profile, day };

/// Mails that have the same values.
struct MailTally {
  std::vector<std::string>
      values{};  ///< in the order that was asked for; empty for mails of accounts' tokens
  std::int64_t mails = 0;
  std::int64_t accepted = 0;
  std::int64_t rejected = 0;
  std::int64_t deferred = 0;
  std::int64_t perhaps_twice = 0;  ///< of the accepted and the unknown

  /// Of those that were accepted or rejected, 0 to 1; 0 if none was.
  double rejected_part() const;
};

/// Counts the mails of tokens that were created from `since` on and before `until`, most first. A token that
/// several queues deliver counts once.
std::vector<MailTally> count_mails(db::Connection& connection, const std::vector<CountedBy>& by, Moment since,
                                   Moment until);

}  // namespace mailroom::messages
