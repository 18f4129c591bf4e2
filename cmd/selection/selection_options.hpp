// The selectors that every verb takes, with one help, and the selection that they make.
#pragma once

#include <string>
#include <vector>

#include "cmd/syntax/command_syntax.hpp"
#include "db/connection.hpp"
#include "selection/selection.hpp"

namespace mailroom {

/// What was typed: `typed` but for what needs the database, its actions, accounts and clock.
struct SelectionOptions {
  Selection typed{};
  std::vector<std::string> actions{};
  std::vector<std::string> accounts{};
  std::string since{};
  std::string until{};

  /// True if no selector is given.
  bool empty() const {
    return typed.empty() && actions.empty() && accounts.empty() && since.empty() && until.empty();
  }
};

/// Adds --action, --account, --outcome, --code, --batch, --consumer, --key, --since and --until to a command.
/// `since_default` is shown as that of --since, if it is not empty; `what` is what the times are of. --queue
/// is the setting queue.name.
void add_selectors(CommandSyntax& syntax, SelectionOptions& options, const std::string& since_default = "",
                   const std::string& what = "tokens created");

/// A line for when no token matches: what the times that were typed mean. Empty if none was.
std::string no_match_hint(const SelectionOptions& options);

/// Throws Error(usage) for times that no clock can make a period of. Call it before the command connects.
void check_selection(const SelectionOptions& options);

/// Looks actions and accounts up, and reads the times by the server's clock. Throws as Actions::require(),
/// find_accounts() and parse_period() do.
Selection read_selection(Connection& connection, const SelectionOptions& options);

}  // namespace mailroom
