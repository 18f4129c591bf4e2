// The messages of a batch, which its tokens point to: read beside them, or in parts for a large batch.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "claim/queue_session.hpp"
#include "db/connection.hpp"

namespace mailroom {

/// The columns of a message, of a row `m` of mailroom_messages or of one with the same columns; `attachments`
/// is SQL for their number, `id` for the id.
std::string message_columns(const std::string& attachments, const std::string& id);

/// Reads message_columns() from `first_column` on. The views are valid as long as the result that has the
/// row.
MessageContent read_message(const pqxx::row& row, int first_column);

/// Sets what the row of a token takes from its message. The template of the action stands in for content that
/// the message does not have.
void set_message(TokenRow& row, MessageContent& message);

/// How many messages of a batch are read at a time: all of a large one would be its bodies in memory.
constexpr std::size_t messages_per_part = 100;

/// Some messages of a batch, with their texts.
class MessagePart {
 public:
  /// Reads these messages, each once, in place of those that it has.
  void read(Connection& connection, const std::vector<std::int64_t>& ids);
  /// Null if there is none: it was deleted.
  MessageContent* find(std::int64_t id);

 private:
  pqxx::result rows_;
  std::map<std::int64_t, MessageContent> messages_;
};

}  // namespace mailroom
