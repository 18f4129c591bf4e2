// What resend and revoke take: names as audit does, or selectors, or both.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "accounts/named_subject.hpp"
#include "cmd/selection/selection_options.hpp"

namespace mailroom::cmd {

/// What was typed.
struct NamedTokensOptions {
  std::vector<std::string> names{};
  SelectionOptions selectors{};

  bool empty() const { return names.empty() && selectors.empty(); }
};

/// The tokens that are meant.
struct NamedTokens {
  selection::Selection selection{};
  bool by_token = false;  ///< the operator named each of them
};

/// Adds NAME and the selectors; `verb` begins the help of NAME: `send`.
void add_named_tokens(CommandSyntax& syntax, NamedTokensOptions& options, const std::string& verb);

/// Throws Error(usage) for names and times that mean nothing. Call it before the command connects.
void check_named_tokens(const NamedTokensOptions& options);

/// Whom tokens mail, as the plan of resend and revoke shows it.
struct MailedToken {
  std::int64_t id = 0;
  std::string action{};
  std::string address{};
};

/// More are not listed.
constexpr std::size_t most_listed_tokens = 10;

/// Those of `tokens`, by id; none if there are more than `most_listed_tokens`.
std::vector<MailedToken> mailed_tokens(db::Connection& connection, std::vector<std::int64_t> tokens);
/// A table of them.
std::string render_mailed(const std::vector<MailedToken>& tokens, std::size_t width);
/// An array of them.
nlohmann::ordered_json mailed_json(const std::vector<MailedToken>& tokens);

/// The subject with the id of the message that its uuid names: that of `message:UUID`, or a uuid alone if a
/// message has it. Throws Error(unusable) if none has the former.
accounts::NamedSubject with_message_found(db::Connection& connection, accounts::NamedSubject subject);

/// Looks names up. Throws Error(unusable) for one that is not found. resolve_outcomes() finds the tokens of
/// its outcomes.
NamedTokens read_named_tokens(db::Connection& connection, const NamedTokensOptions& options);

}  // namespace mailroom::cmd
