// What message cancel and message reschedule would do to one message, and do, for whoever asks at another
// place than a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "db/connection.hpp"
#include "messages/message_record.hpp"
#include "queue/operation_author.hpp"

namespace mailroom::cmd {

struct MessagePlan {
  std::vector<std::int64_t> ids{};  ///< that would be changed
  std::string text{};               ///< as the command prints it
};

/// True if a mail of it may still be kept from leaving.
bool may_be_cancelled(const messages::MessageSummary& message);

/// Throws Error(unusable) if there is no such message.
MessagePlan plan_cancellation(db::Connection& connection, std::int64_t message, std::size_t width);
/// Returns what was done, as the command prints it. Throws as messages::cancel_messages().
std::string carry_out_cancellation(db::Connection& connection, const MessagePlan& plan,
                                   const queue::OperationAuthor& author);

/// Likewise, to another time.
MessagePlan plan_rescheduling(db::Connection& connection, std::int64_t message, Moment send_after,
                              std::size_t width);
std::string carry_out_rescheduling(db::Connection& connection, const MessagePlan& plan, Moment send_after,
                                   const queue::OperationAuthor& author);

}  // namespace mailroom::cmd
