// Asks for a message as applications do, and cancels messages for an operator.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "db/connection.hpp"
#include "queue/operation_author.hpp"

namespace mailroom::messages {

/// A file as it is read from disk.
struct NewFile {
  std::string name{};
  std::string type{};
  std::string content{};
};

/// The arguments of mailroom_send(); what is not given is null there.
struct NewMessage {
  std::vector<std::string> recipients{};
  std::vector<std::string> cc{};
  std::vector<std::string> bcc{};
  std::optional<std::string> sender{};
  std::optional<std::string> reply_to{};
  std::optional<std::string> headers{};  ///< a JSON object
  std::optional<std::string> template_name{};
  std::optional<std::string> locale{};
  std::optional<std::string> data{};  ///< JSON
  std::optional<std::string> subject{};
  std::optional<std::string> text{};
  std::optional<std::string> html{};
  std::vector<NewFile> files{};
  std::string action = "message";
  std::optional<std::int64_t> account{};
  std::optional<std::string> profile{};
  std::optional<std::string> topic{};
  std::optional<Moment> send_after{};
  std::optional<Moment> expires_at{};  ///< year_10000: no end
  std::optional<std::string> key{};
  std::optional<std::string> reference{};
  bool replace = false;
};

/// The message that mailroom_send() returned.
struct SentMessage {
  std::int64_t id = 0;
  bool is_new = true;                      ///< false: a message with this key exists already
  std::optional<std::int64_t> replaced{};  ///< the message with this key whose place it took
  bool had_left = false;                   ///< the replaced one, to some recipient: he gets both
  bool is_leaving = false;                 ///< a consumer holds the replaced one, and may still send it
};

/// Throws Error(usage) with the server's words for what cannot be a mail.
SentMessage send_message(db::Connection& connection, const NewMessage& message);

/// What mailroom_cancel() said of a message.
struct Cancellation {
  std::int64_t message = 0;
  std::string result{};  ///< `cancelled`, `sending` or `sent`; empty if it was cancelled before, or is gone
};

/// Cancels the messages, all in one transaction. Throws Error(unusable) for one of a role that this one is no
/// member of.
std::vector<Cancellation> cancel_messages(db::Connection& connection,
                                          const std::vector<std::int64_t>& messages,
                                          const queue::OperationAuthor& author);

/// Moves those of the messages that wait for their time to another one, all in one transaction; returns how
/// many. Throws Error(unusable) for one of a role that this one is no member of.
std::int64_t reschedule_messages(db::Connection& connection, const std::vector<std::int64_t>& messages,
                                 Moment send_after, const queue::OperationAuthor& author);

}  // namespace mailroom::messages
