// The messages to which the tokens of a batch point: small ones come with the tokens, the others are read in
// parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "claim/queue_session.hpp"
#include "db/connection.hpp"

namespace mailroom::claim {

/// SQL for what a row `m` with the columns of a message has under other names, or not at all.
struct MessageSource {
  // Of mailroom_messages.
  const char* id = "m.id";
  const char* attachments = "(SELECT count(*) FROM mailroom_attachments x WHERE x.message = m.id)";
  const char* raw_size = "octet_length(m.raw)";
  const char* keeps_return_path = "coalesce((m.options->>'keep_return_path')::boolean, false)";
};

/// The columns of a message. A raw mail itself is none of them: RawMailReader reads it.
std::string message_columns(const MessageSource& source = {});

/// Reads message_columns(). The views are valid as long as the result that has the row.
MessageContent read_message(const db::Row& row);
/// The same of a message that may not have come along: nullopt then.
std::optional<MessageContent> read_optional_message(const db::Row& row);

/// Sets what the row of a token takes from its message. The template of the action stands in for content that
/// the message does not have.
void set_message(TokenRow& row, MessageContent& message);

/// At most so many tokens bring the contents of their messages along.
constexpr int tokens_with_contents = 100;

/// SQL: the row `m` of a message is small enough to come along with its token. No size needs the text itself,
/// also of one that is stored out of line.
std::string is_small_message(const std::string& m);

/// The messages of the tokens of a batch that did not come with them. Reads some at a time, as all of a large
/// batch would be its bodies in memory.
class MessageReader {
 public:
  /// Returns ids of messages in the order in which they will be asked for, from that which is asked for on.
  using Ahead = std::function<std::vector<std::int64_t>()>;

  /// The message `id`; null if it was deleted. Valid until the next call for one that has not been read.
  /// Reads it with some of those that come after it, if it has not been.
  MessageContent* get(db::Connection& connection, std::int64_t id, const Ahead& ahead);

  /// How many messages are of use to get() at once.
  static constexpr std::size_t most = 100;

 private:
  void read(db::Connection& connection, const std::vector<std::int64_t>& ids);

  db::Rows rows_;
  std::map<std::int64_t, std::optional<MessageContent>>
      messages_;  ///< those that were read; nullopt: deleted
};

/// The raw mails of a batch. A mail is read for a message, whatever the number of its tokens, and some at a
/// time.
class RawMailReader {
 public:
  /// Sets the raw mail of `message`, if it has one, until the next call for one that has not been read; it
  /// stays nullopt if it has been removed since. `ahead` as for MessageReader.
  void set(db::Connection& connection, MessageContent& message, const MessageReader::Ahead& ahead);

 private:
  void read(db::Connection& connection, const std::vector<std::int64_t>& ids);

  db::Rows rows_;
  std::map<std::int64_t, std::optional<std::string_view>> mails_;  ///< nullopt: there is none
};

/// The first ids that `id_of` returns for the places from `first` on, as MessageReader::Ahead returns them.
template <typename IdOf>
std::vector<std::int64_t> messages_ahead(std::size_t first, std::size_t end, const IdOf& id_of) {
  std::vector<std::int64_t> ids;
  for (auto i = first; i < end && ids.size() < MessageReader::most; ++i) {
    const std::optional<std::int64_t> id = id_of(i);
    if (id && (ids.empty() || ids.back() != *id)) ids.push_back(*id);
  }
  return ids;
}

}  // namespace mailroom::claim
