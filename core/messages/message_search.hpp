// Which messages an operator means, and how they are found without asking for the state of each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "messages/message_record.hpp"
#include "selection/mail_selectors.hpp"

namespace mailroom::messages {

/// Messages that match each of the selectors that are given, and of each at least one value.
struct MessageSelection {
  std::vector<std::string> states{};  ///< of at least one recipient
  std::vector<std::string>
      recipients{};  ///< addresses or mailboxes, in any case; to, cc or bcc, or the account's
  std::vector<std::string> references{};
  std::vector<std::string> actions{};
  std::vector<std::string> owners{};  ///< roles that messages belong to
  selection::MailSelectors mail{};
  std::optional<Moment> since{};  ///< of the creation
  std::optional<Moment> until{};  ///< exclusive

  bool empty() const {
    return states.empty() && recipients.empty() && references.empty() && actions.empty() && owners.empty() &&
           mail.empty() && !since && !until;
  }
};

/// Returns the newest `limit` messages that match, newest first. Asks only those for their states that
/// records of deliveries, batches and the schedule let have one of the selected states.
std::vector<MessageSummary> list_messages(db::Connection& connection, const MessageSelection& selection,
                                          std::int64_t limit);

/// What cancelling would find among the messages of a selection.
struct Cancellable {
  std::vector<std::int64_t> open{};  ///< of which a mail may still be sent, oldest first
  std::int64_t partly_left = 0;      ///< of those, how many have left for some recipient
  std::int64_t left = 0;             ///< of the others, how many have left
  std::int64_t ended = 0;            ///< cancelled, replaced, refused or expired
};

/// Finds them by their records, not by their states: one statement, however many there are.
Cancellable find_cancellable(db::Connection& connection, const MessageSelection& selection);

/// Returns the ids of the newest `limit` messages to the address `name`, as the first recipient, or with the
/// reference `name`, newest first: by index, however many messages there are.
std::vector<std::int64_t> find_indexed_messages(db::Connection& connection, const std::string& name,
                                                std::int64_t limit);

/// Returns the ids of the newest `limit` messages to the address `name` or with the reference `name`, newest
/// first: by index, those to it as the first recipient; those that name it later if they are found within
/// half a second, or if there are no others.
std::vector<std::int64_t> find_messages(db::Connection& connection, const std::string& name,
                                        std::int64_t limit);

}  // namespace mailroom::messages
