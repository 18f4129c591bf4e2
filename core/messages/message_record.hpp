// What a message asks for and what became of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "db/connection.hpp"

namespace mailroom::messages {

/// What became of a message for one recipient in one queue.
struct MessageDelivery {
  std::string recipient{};  ///< as the message names it, or the address of its account
  std::string state{};      ///< a word of docs/outcomes.md, or `scheduled`, `cancelled` or `replaced`
  std::string queue{};      ///< empty before a queue has dealt with it
  std::optional<std::int64_t> token{};  ///< nullopt before it is due
  int attempts = 0;
  std::optional<Moment> at{};
  int code = 0;  ///< of the last reply; 0 for none
  std::string reply{};
  std::string message_id{};  ///< of its mail; empty if there is none, or nobody tells
};

/// A file that goes with a message.
struct MessageFile {
  std::string name{};
  std::string type{};
  std::string content_id{};  ///< of an inline image; empty for a file of its own
  std::int64_t size = 0;
};

/// A line of a list of messages.
struct MessageSummary {
  std::int64_t id = 0;
  std::string action{};
  std::string template_name{};  ///< of the message, or else of its action; empty for content of its own
  std::string recipient{};      ///< the first, or the address of its account; empty if that was deleted
  std::int64_t recipients = 0;
  std::vector<std::string> to{};  ///< or the address of its account
  std::vector<std::string> cc{};
  std::vector<std::string> bcc{};
  std::optional<std::int64_t> account{};
  std::string
      subject{};  ///< that of a raw mail too; empty with a template, and for a role that may not read content
  std::string reference{};
  Moment created_at{};
  std::optional<Moment> send_after{};
  std::string enqueued_by{};
  std::string owner{};                                         ///< the role that it belongs to
  std::vector<std::pair<std::string, std::int64_t>> states{};  ///< how many recipients have which

  /// True if some recipient has this state.
  bool has_state(std::string_view state) const;
  /// True if each recipient has this state.
  bool is_only(std::string_view state) const { return states.size() == 1 && states.front().first == state; }
};

/// A row of mailroom_messages, and all that became of it. Texts are empty where the column is null.
struct MessageRecord {
  MessageSummary summary{};
  std::string sender{};
  std::string reply_to{};
  std::string headers{};  ///< a JSON object
  std::string locale{};
  std::string data{};                  ///< JSON
  std::optional<std::int64_t> text{};  ///< size in bytes
  std::optional<std::int64_t> html{};  ///< likewise
  std::optional<std::int64_t> raw{};   ///< likewise, of a raw mail
  std::optional<std::string> return_path{};
  std::string profile{};
  std::string topic{};
  std::string key{};
  std::optional<Moment> expires_at{};
  std::optional<Moment> replaced_at{};
  std::optional<Moment> cancelled_at{};
  std::optional<Moment> erased_at{};
  std::string uuid{};  ///< by which HTTP names it; empty if this role may not know
  std::vector<MessageFile> files{};
  std::vector<MessageDelivery> deliveries{};
};

/// The summaries of these messages, newest first; with `states`, of those that have one for some recipient.
std::vector<MessageSummary> read_summaries(pqxx::transaction_base& transaction,
                                           const std::vector<std::int64_t>& messages,
                                           const std::vector<std::string>& states = {});
/// Without its content and its files for a role that may not read content. Throws Error(unusable) if there is
/// no such message.
MessageRecord read_message(db::Connection& connection, std::int64_t message);
/// The raw mail of a message. Throws Error(unusable) if it has none, or none any more.
std::string read_raw_mail(db::Connection& connection, std::int64_t message);
/// Its summary, within the caller's transaction; likewise.
MessageSummary read_summary_within(pqxx::transaction_base& transaction, std::int64_t message);

/// Returns the ids of the tokens of these messages.
std::vector<std::int64_t> tokens_of_messages(pqxx::transaction_base& transaction,
                                             const std::vector<std::int64_t>& messages);
/// Returns those to the address `name`, and all of messages with the reference `name`.
std::vector<std::int64_t> tokens_of_messages_to(pqxx::transaction_base& transaction,
                                                const std::vector<std::int64_t>& messages,
                                                const std::string& name);

/// What names a message: `17`, its uuid, or either behind `message:`. Throws Error(usage) for anything else.
void check_message_name(std::string_view text);
/// The id of the message that is named so. Throws Error(unusable) for a uuid of none.
std::int64_t message_named(db::Connection& connection, std::string_view text);
/// The id of the message that has the uuid `text`, which may be any text.
std::optional<std::int64_t> find_by_uuid(db::Connection& connection, std::string_view text);

}  // namespace mailroom::messages
