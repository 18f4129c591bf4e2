// The messages whose time has not come, and those that nobody has released since.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.hpp"
#include "db/connection.hpp"

namespace mailroom {

/// Messages that wait for their time. All queues have them in common: which queues take them shows when they
/// have tokens.
struct ScheduledMessages {
  bool is_known =
      true;  ///< false: the role may not read the schedule, as roles of before there were messages
  std::int64_t messages = 0;
  bool estimated = false;  ///< there are too many to count them
  std::optional<Moment>
      next_at{};  ///< when the first of them is due, in whole milliseconds; in the past: overdue

  /// How long the first of them is overdue; 0 if none is.
  Milliseconds overdue(Moment now) const;
};

/// Within the caller's transaction, at a cost that does not grow with their number.
ScheduledMessages read_scheduled_messages(pqxx::transaction_base& transaction);

}  // namespace mailroom
