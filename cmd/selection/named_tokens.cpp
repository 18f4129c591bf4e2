// Names are selectors in short: accounts, batches, messages or tokens, and of one kind in a command.

#include "cmd/selection/named_tokens.hpp"

#include <limits>
#include <optional>
#include <utility>

#include "accounts/account_lookup.hpp"
#include "accounts/named_subject.hpp"
#include "base/error.hpp"
#include "base/id_range.hpp"
#include "cmd/command.hpp"
#include "messages/message_record.hpp"

namespace mailroom {
namespace {

NamedSubject subject_of(std::string_view name) {
  return parse_subject(name.substr(!name.empty() && name.front() == token_mark ? 1 : 0));
}

/// The ids of `token:6-10` or `token:6-`; nullopt for another name.
std::optional<IdRange> token_range(std::string_view name) {
  constexpr std::string_view prefix = "token:";
  const auto dash = name.find('-');
  if (!name.starts_with(prefix) || dash == std::string_view::npos) return std::nullopt;
  const auto first = parse_id(name.substr(prefix.size(), dash - prefix.size()));
  const auto last = parse_id(name.substr(dash + 1));
  const bool is_open = dash + 1 == name.size();
  constexpr auto end = std::numeric_limits<std::int64_t>::max();
  if (!first || (!last && !is_open) || (last && (*last < *first || *last == end))) return std::nullopt;
  return IdRange{.first = *first, .end = is_open ? end : *last + 1};
}

bool is_token(const NamedSubject& subject) {
  return subject.kind == NamedSubject::Kind::token || subject.kind == NamedSubject::Kind::signed_token;
}

/// A token must match all that is given, so it cannot be one of an account or else of a batch.
[[noreturn]] void refuse_several_kinds() {
  throw Error(ExitCode::usage, "accounts, tokens, batches and messages are named together",
              "name one kind at a time, each in a command of its own");
}

void require_one_kind(const std::vector<NamedSubject>& subjects) {
  for (const auto& subject : subjects) {
    if (is_token(subject) == is_token(subjects.front()) &&
        (is_token(subject) || subject.kind == subjects.front().kind))
      continue;
    refuse_several_kinds();
  }
}

/// What the names mean, without ranges of tokens.
std::vector<NamedSubject> subjects_of(const NamedTokensOptions& options) {
  std::vector<NamedSubject> subjects;
  bool has_range = false;
  for (const auto& name : options.names) {
    const bool is_range = token_range(name).has_value();
    has_range = has_range || is_range;
    if (!is_range) subjects.push_back(subject_of(name));
  }
  require_one_kind(subjects);
  if (has_range && !subjects.empty() && !is_token(subjects.front())) refuse_several_kinds();
  return subjects;
}

/// Those of all recipients. Throws Error(unusable) for a message without tokens.
std::vector<IdRange> tokens_of(Connection& connection, const std::vector<std::int64_t>& messages) {
  std::vector<IdRange> ranges;
  for (const auto message : messages) {
    const auto tokens = connection.alone(
        [&](pqxx::transaction_base& transaction) { return tokens_of_messages(transaction, {message}); });
    if (tokens.empty()) {
      throw Error(ExitCode::unusable, "message " + std::to_string(message) + " has no token",
                  "mailroom message show says whether it is scheduled, cancelled or gone");
    }
    for (const auto token : tokens)
      ranges.push_back({.first = token, .end = token + 1});
  }
  return ranges;
}

}  // namespace

void add_named_tokens(CommandSyntax& syntax, NamedTokensOptions& options, const std::string& verb) {
  syntax.texts_or_tokens(
      "NAME", options.names,
      verb +
          " the tokens of this account (id, email or login), or of batch:N, or message:N, or token:N, or token:N-M");
  add_selectors(syntax, options.selectors);
}

void check_named_tokens(const NamedTokensOptions& options) {
  subjects_of(options);
  check_selection(options.selectors);
}

NamedTokens read_named_tokens(Connection& connection, const NamedTokensOptions& options) {
  NamedTokens named{.selection = read_selection(connection, options.selectors)};
  auto& selection = named.selection;
  std::vector<std::string> accounts;
  std::vector<std::int64_t> messages;
  std::vector<IdRange> tokens;
  for (const auto& name : options.names)
    if (const auto range = token_range(name)) tokens.push_back(*range);
  named.by_token = tokens.empty();
  for (const auto& subject : subjects_of(options)) {
    if (is_token(subject)) {
      const auto id = token_id_of(connection, subject);
      tokens.push_back({.first = id, .end = id + 1});
    }
    if (subject.kind == NamedSubject::Kind::message) messages.push_back(subject.id);
    if (subject.kind == NamedSubject::Kind::batch) selection.batches.push_back(subject.id);
    if (subject.kind == NamedSubject::Kind::account) accounts.push_back(subject.name);
  }
  for (const auto& account : find_accounts(connection, accounts))
    selection.accounts.push_back(account.id);
  named.by_token = named.by_token && !tokens.empty();
  if (!messages.empty()) selection.tokens = tokens_of(connection, messages);
  if (!tokens.empty()) selection.tokens = std::move(tokens);
  return named;
}

}  // namespace mailroom
