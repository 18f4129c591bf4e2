// Names are selectors in short: accounts, batches, messages or tokens, and of one kind in a command.

#include "cmd/selection/named_tokens.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <utility>

#include "accounts/account_lookup.hpp"
#include "accounts/named_subject.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "cmd/command.hpp"
#include "cmd/terminal/text_table.hpp"
#include "db/search_path.hpp"
#include "feed/event.hpp"
#include "mail/address.hpp"
#include "messages/message_search.hpp"
#include "selection/id_range.hpp"

namespace mailroom::cmd {
namespace {

accounts::NamedSubject subject_of(std::string_view name) {
  return accounts::parse_subject(name.substr(!name.empty() && name.front() == token_mark ? 1 : 0));
}

/// The ids of `token:6-10` or `token:6-`; nullopt for another name.
std::optional<selection::IdRange> token_range(std::string_view name) {
  constexpr std::string_view prefix = "token:";
  const auto dash = name.find('-');
  if (!name.starts_with(prefix) || dash == std::string_view::npos) return std::nullopt;
  const auto first = accounts::parse_id(name.substr(prefix.size(), dash - prefix.size()));
  const auto last = accounts::parse_id(name.substr(dash + 1));
  const bool is_open = dash + 1 == name.size();
  constexpr auto end = std::numeric_limits<std::int64_t>::max();
  if (!first || (!last && !is_open) || (last && (*last < *first || *last == end))) return std::nullopt;
  return selection::IdRange{.first = *first, .end = is_open ? end : *last + 1};
}

bool is_token(const accounts::NamedSubject& subject) {
  return subject.kind == accounts::NamedSubject::Kind::token ||
         subject.kind == accounts::NamedSubject::Kind::signed_token;
}

/// A token must match all that is given, so it cannot be one of an account or else of a batch.
[[noreturn]] void refuse_several_kinds() {
  throw Error(ExitCode::usage, "accounts, tokens, batches and messages are named together",
              "name one kind at a time, each in a command of its own");
}

void require_one_kind(const std::vector<accounts::NamedSubject>& subjects) {
  for (const auto& subject : subjects) {
    if (is_token(subject) == is_token(subjects.front()) &&
        (is_token(subject) || subject.kind == subjects.front().kind))
      continue;
    refuse_several_kinds();
  }
}

/// What the names mean, without ranges of tokens.
std::vector<accounts::NamedSubject> subjects_of(const NamedTokensOptions& options) {
  std::vector<accounts::NamedSubject> subjects;
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

/// Why a message has no token, and what to do.
std::string hint_without_token(db::Connection& connection, std::int64_t message) {
  const auto summary = connection.alone([&](pqxx::transaction_base& transaction) {
    return messages::read_summary_within(transaction, message);
  });
  if (summary.is_only("no_token"))
    return "its trigger did not fire: mailroom doctor finds such messages of the last day, and prints how to send them";
  if (summary.is_only("scheduled")) {
    return fmt::format("it is scheduled; mailroom message reschedule {} --send-after now sends it", message);
  }
  return "mailroom message show says whether it is scheduled, cancelled or gone";
}

/// Those of all recipients. Throws Error(unusable) for a message without tokens.
std::vector<selection::IdRange> tokens_of(db::Connection& connection,
                                          const std::vector<std::int64_t>& messages) {
  std::vector<selection::IdRange> ranges;
  for (const auto message : messages) {
    const auto tokens = connection.alone([&](pqxx::transaction_base& transaction) {
      return messages::tokens_of_messages(transaction, {message});
    });
    if (tokens.empty()) {
      throw Error(ExitCode::unusable, "message " + std::to_string(message) + " has no token",
                  hint_without_token(connection, message));
    }
    for (const auto token : tokens)
      ranges.push_back({.first = token, .end = token + 1});
  }
  return ranges;
}

/// More messages to one address are refused, with or without a time.
constexpr std::int64_t most_named_messages = 1000;

/// Several messages are mailed at once only if a time narrows them: the newest may be meant.
void refuse_many(const std::string& name, const std::vector<std::int64_t>& messages,
                 const selection::Selection& selection) {
  const auto count = static_cast<std::int64_t>(messages.size());
  if (count == 1 || (count < most_named_messages && (selection.since || selection.until))) return;
  constexpr std::size_t shown = 5;
  const std::vector<std::int64_t> newest(
      messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(std::min(messages.size(), shown)));
  throw Error(
      ExitCode::usage,
      fmt::format("'{}' names {}{} messages: {}{}", shown_text(name),
                  count == most_named_messages ? "more than " : "", count, joined(newest, ", "),
                  newest.size() < messages.size() ? ", …" : ""),
      fmt::format("name one as message:{}, one of its recipients as token:N, or narrow them with --since",
                  messages.front()));
}

/// What `name` selects: an account, or else the tokens of messages to this address or with this reference.
void add_account_or_messages(db::Connection& connection, const std::string& name,
                             const selection::Selection& selection,
                             std::vector<accounts::AccountRecord>& accounts,
                             std::vector<selection::IdRange>& tokens) {
  try {
    for (auto& account : accounts::find_accounts(connection, {name}))
      accounts.push_back(std::move(account));
  } catch (const Error& error) {
    const auto text = mail::address_of_mailbox(name.starts_with("email:") ? name.substr(6) : name);
    const bool is_account = accounts::parse_id(name) || name.starts_with("id:") || name.starts_with("login:");
    const auto messages = error.code() != ExitCode::unusable || is_account
                              ? std::vector<std::int64_t>()
                              : messages::find_messages(connection, text, most_named_messages);
    if (messages.empty()) throw;
    refuse_many(name, messages, selection);
    const auto found = connection.alone([&](pqxx::transaction_base& transaction) {
      return messages::tokens_of_messages_to(transaction, messages, text);
    });
    if (found.empty()) {
      throw Error(ExitCode::unusable, fmt::format("message {} has no token", messages.front()),
                  hint_without_token(connection, messages.front()));
    }
    for (const auto token : found)
      tokens.push_back({.first = token, .end = token + 1});
  }
}

}  // namespace

accounts::NamedSubject with_message_found(db::Connection& connection, accounts::NamedSubject subject) {
  using Kind = accounts::NamedSubject::Kind;
  if (subject.kind == Kind::message && !subject.name.empty())
    subject.id = messages::message_named(connection, subject.name);
  // A uuid may be a reference or a login, too.
  if (subject.kind == Kind::account) {
    if (const auto id = messages::find_by_uuid(connection, subject.name))
      return {.kind = Kind::message, .id = *id};
  }
  return subject;
}

void add_named_tokens(CommandSyntax& syntax, NamedTokensOptions& options, const std::string& verb) {
  syntax.texts_or_tokens(
      "NAME", options.names,
      verb +
          " the tokens of this account (id, email or login), or of batch:N, or message:N, or token:N, or token:N-M, or of the message to this address or with this reference");
  add_selectors(syntax, options.selectors);
  add_mailing_selectors(syntax, options.selectors);
}

void check_named_tokens(const NamedTokensOptions& options) {
  subjects_of(options);
  check_selection(options.selectors);
}

std::vector<MailedToken> mailed_tokens(db::Connection& connection, std::vector<std::int64_t> tokens) {
  std::ranges::sort(tokens);
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  if (tokens.empty() || tokens.size() > most_listed_tokens) return {};
  std::vector<MailedToken> mailed;
  for (const auto& token : connection.alone(
           [&](pqxx::transaction_base& transaction) { return feed::find_tokens(transaction, tokens); }))
    mailed.push_back({.id = token.id, .action = token.action, .address = token.account.email});
  std::ranges::sort(mailed, {}, &MailedToken::id);
  return mailed;
}

std::string render_mailed(const std::vector<MailedToken>& tokens, std::size_t width) {
  if (tokens.empty()) return "";
  TextTable table({{"token", TextTable::Align::right}, {"action"}, {"address"}});
  for (const auto& token : tokens)
    table.add({std::to_string(token.id), shown_text(token.action), shown_text(token.address)});
  return table.render(width) + "\n";
}

nlohmann::ordered_json mailed_json(const std::vector<MailedToken>& tokens) {
  return array_json<nlohmann::ordered_json>(tokens, [](const auto& token) {
    return nlohmann::ordered_json{{"token", token.id}, {"action", token.action}, {"address", token.address}};
  });
}

NamedTokens read_named_tokens(db::Connection& connection, const NamedTokensOptions& options) {
  NamedTokens named{.selection = read_selection(connection, options.selectors)};
  auto& selection = named.selection;
  std::vector<accounts::AccountRecord> accounts;
  std::vector<selection::IdRange> of_messages;
  std::vector<std::int64_t> messages;
  std::vector<selection::IdRange> tokens;
  for (const auto& name : options.names)
    if (const auto range = token_range(name)) tokens.push_back(*range);
  named.by_token = tokens.empty();
  for (const auto& typed : subjects_of(options)) {
    const auto subject = with_message_found(connection, typed);
    if (is_token(subject)) {
      const auto id = accounts::token_id_of(connection, subject);
      tokens.push_back({.first = id, .end = id + 1});
    }
    if (subject.kind == accounts::NamedSubject::Kind::message) messages.push_back(subject.id);
    if (subject.kind == accounts::NamedSubject::Kind::batch) selection.batches.push_back(subject.id);
    if (subject.kind == accounts::NamedSubject::Kind::account)
      add_account_or_messages(connection, subject.name, selection, accounts, of_messages);
  }
  if (!accounts.empty() && !of_messages.empty()) refuse_several_kinds();
  for (const auto& account : accounts)
    selection.accounts.push_back(account.id);
  named.by_token = named.by_token && !tokens.empty();
  if (!messages.empty()) selection.tokens = tokens_of(connection, messages);
  if (!of_messages.empty()) selection.tokens = std::move(of_messages);
  if (!tokens.empty()) selection.tokens = std::move(tokens);
  return named;
}

}  // namespace mailroom::cmd
