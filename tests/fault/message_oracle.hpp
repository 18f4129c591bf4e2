#pragma once

#include <string>
#include <vector>

#include "db/connection.hpp"
#include "fault/message_load.hpp"
#include "support/test_relay.hpp"

namespace mailroom::test {

/// What became of the messages of producers: their notes, compared with what the relays took.
struct MessageTally {
  std::size_t committed = 0;    ///< mails, one for each address of a call
  std::size_t cancelled = 0;    ///< calls
  std::size_t lost = 0;         ///< committed, neither taken nor on record as given up, cancelled or replaced
  std::size_t rolled_back = 0;  ///< taken, although its transaction was rolled back
  std::size_t revoked = 0;      ///< taken, although said to be cancelled, or replaced before its time
  std::size_t twice = 0;        ///< mails beyond the one of a call or key, each by a message of its own
};

/// The tokens of messages, by message and address.
std::map<std::pair<std::int64_t, std::string>, std::int64_t> tokens_of_messages(db::Connection& connection);

/// Throws if a mail has no subject.
MessageTally judge_messages(db::Connection& connection, const MessageNotes& notes,
                            const std::vector<TakenMail>& mails);

}  // namespace mailroom::test
