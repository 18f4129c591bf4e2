// The selectors that every verb takes, with one help, and the selection that they make.
#pragma once

#include <string>
#include <vector>

#include "cmd/syntax/command_syntax.hpp"
#include "db/connection.hpp"
#include "selection/selection.hpp"

namespace mailroom::cmd {

/// What was typed: `typed` but for what needs the database, its actions, accounts and clock.
struct SelectionOptions {
  selection::Selection typed{};
  std::vector<std::string> actions{};
  std::vector<std::string> accounts{};
  std::string since{};
  std::string until{};
  std::string mailed_since{};
  std::string mailed_until{};

  /// True if tokens are selected by the time of a mail.
  bool by_mailing() const { return !mailed_since.empty() || !mailed_until.empty(); }
  /// When tokens begin that may match: of those that were mailed in a period, any time before it.
  std::string first_creation() const { return since.empty() && by_mailing() ? "1970-01-01" : since; }
  /// True if no selector is given.
  bool empty() const {
    return typed.empty() && actions.empty() && accounts.empty() && since.empty() && until.empty() &&
           !by_mailing();
  }
};

/// Adds --action, --account, --outcome, --code, --batch, --consumer, --key, --since and --until to a command.
/// `since_default` is shown as that of --since, if it is not empty; `what` is what the times are of. --queue
/// is the setting queue.name.
void add_selectors(CommandSyntax& syntax, SelectionOptions& options, const std::string& since_default = "",
                   const std::string& what = "tokens created");

/// Adds an outcome that was typed, or perhaps_twice or in_flight, which narrow whatever outcomes there are.
/// Throws Error(usage).
void select_outcome(selection::Selection& typed, const std::string& option, const std::string& text);
/// The words that select_outcome() takes.
std::vector<std::string> outcome_choices();

/// Adds --domain, --role, --template, --subject, --locale, --queue-id and --message-id, which every verb with
/// selectors takes, to the options of `group`.
void add_mail_selectors(CommandSyntax& syntax, selection::MailSelectors& selectors, const char* group);

/// Adds --mailed-since and --mailed-until, for a command whose --since is not the time of mails.
void add_mailing_selectors(CommandSyntax& syntax, SelectionOptions& options);

/// A line for when no token matches: what the times that were typed mean. Empty if none was.
std::string no_match_hint(const SelectionOptions& options);

/// Throws Error(usage) for times that no clock can make a period of. Call it before the command connects.
void check_selection(const SelectionOptions& options);

/// Looks actions and accounts up, and reads the times by the server's clock. Throws as Actions::require(),
/// find_accounts() and parse_period() do.
selection::Selection read_selection(db::Connection& connection, const SelectionOptions& options);

}  // namespace mailroom::cmd
