// What resend and revoke take: names as audit does, or selectors, or both.
#pragma once

#include <string>
#include <vector>

#include "cmd/selection/selection_options.hpp"

namespace mailroom {

/// What was typed.
struct NamedTokensOptions {
  std::vector<std::string> names{};
  SelectionOptions selectors{};

  bool empty() const { return names.empty() && selectors.empty(); }
};

/// The tokens that are meant.
struct NamedTokens {
  Selection selection{};
  bool by_token = false;  ///< the operator named each of them
};

/// Adds NAME and the selectors; `verb` begins the help of NAME: `send`.
void add_named_tokens(CommandSyntax& syntax, NamedTokensOptions& options, const std::string& verb);

/// Throws Error(usage) for names and times that mean nothing. Call it before the command connects.
void check_named_tokens(const NamedTokensOptions& options);

/// Looks names up. Throws Error(unusable) for one that is not found. resolve_outcomes() finds the tokens of
/// its outcomes.
NamedTokens read_named_tokens(Connection& connection, const NamedTokensOptions& options);

}  // namespace mailroom
