// What the commands of message share: their options.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cmd/command.hpp"
#include "messages/mail_counts.hpp"
#include "messages/message_search.hpp"
#include "messages/new_message.hpp"
#include "messages/role_limits.hpp"

namespace mailroom::cmd {

/// What was typed to choose messages: `typed` but for what needs the clock of the database.
struct MessageSelectors {
  messages::MessageSelection typed{};
  std::string since{};
  std::string until{};

  bool empty() const { return typed.empty() && since.empty() && until.empty(); }
};

/// The options of send: `message` but for what is read from files and the clock of the database.
struct MessageSendOptions {
  messages::NewMessage message{};
  std::vector<std::string> headers{};  ///< `Name: value`
  std::string text_file{};
  std::string html_file{};
  std::string data_file{};
  std::vector<std::string> files{};
  std::string send_after{};
  std::string expires_at{};
};

/// The options and operands of all commands of message.
struct MessageOptions {
  std::vector<std::string> names{};
  MessageSelectors selectors{};
  std::int64_t limit = 100;
  MessageSendOptions send{};
  messages::RoleLimits limits{};
  bool by_hour = false;
  std::vector<messages::CountedBy> counted_by{};
  std::string reason{};
  bool dry_run = false;
  bool raw = false;
  bool rendered = false;
  std::string recipient{};  ///< of one mail of a message; empty for all
  std::string file{};       ///< that is written
};

// The commands of message; message.cpp describes them.
ExitCode message_list(const MessageOptions& options, Context& context);
ExitCode message_roles(const MessageOptions& options, Context& context);
ExitCode message_counts(const MessageOptions& options, Context& context);
ExitCode message_show(const MessageOptions& options, Context& context);
ExitCode message_record(const MessageOptions& options, Context& context);
ExitCode message_export(const MessageOptions& options, Context& context);
ExitCode message_send(const MessageOptions& options, Context& context);
ExitCode message_cancel(const MessageOptions& options, Context& context);
ExitCode message_reschedule(const MessageOptions& options, Context& context);
ExitCode message_forget(const MessageOptions& options, Context& context);

/// show --rendered. Throws Error(unusable) if no mail of `message` was handed over, or it cannot be made.
ExitCode message_show_rendered(const MessageOptions& options, Context& context, db::Connection& connection,
                               std::int64_t message);

/// A word of message counts --by. Throws Error(usage).
messages::CountedBy parse_counted_by(const std::string& text);

/// The time of --send-after: `now`, a duration from then on, or a date. Throws Error(usage).
Moment read_send_after(const std::string& text, Moment now);

/// messages::check_message_name() of each. The error for an address or a reference names the option that
/// `command` has for it.
void check_names(const std::vector<std::string>& names, const std::string& command);

/// Reads the times by the server's clock. With `limits_age` it begins a day ago without a time, a recipient,
/// a reference or an id of a mail, unless it is about what is scheduled, however old.
messages::MessageSelection read_selectors(db::Connection& connection, const MessageSelectors& selectors,
                                          bool limits_age);

}  // namespace mailroom::cmd
