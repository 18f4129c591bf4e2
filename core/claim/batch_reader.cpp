// Reads tokens, then their accounts as a range or a list of ids, and messages in parts, and merges them in
// memory. The statements are prepared: of a batch of 1,000 tokens the server would need as long for the plan
// as for the rows.

#include "claim/batch_reader.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fmt/format.h>

#include "claim/claim_rows.hpp"
#include "db/values.hpp"

namespace mailroom::claim {
namespace {

/// A range of accounts is read if it has at most this many for each that is needed: looking one up takes as
/// long as reading on over three.
constexpr std::uint64_t accounts_per_needed = 3;

/// Two sessions read a list of at least so many accounts.
constexpr std::size_t fewest_shared = 200;
/// In parts of about so many, or two, since one of them may begin late.
constexpr std::size_t accounts_per_part = 1000;

// Without an account the status that an action needs is the wrong one.
constexpr const char* tokens_sql = R"(
SELECT id, account, action, secret, code, expires_at,
       mailroom_token_state(action, consumed_at, expires_at, NULL,
                            (SELECT floor(extract(epoch FROM clock_timestamp()))::bigint)) AS state{}{}
FROM mailroom_batch_rows($1, $2))";

// In the order of the ids, look-ups in a list that is far from the order of the tokens find most pages in the
// cache of the processor, which is faster than to look up in the order of the tokens and sign them meanwhile.
// It also lets two sessions share them. As text: the server refuses a prepared statement whose result has
// another type than before, and an application may change those of its columns.
constexpr const char* accounts_sql = R"(
SELECT id, email::text, login::text, status::text FROM accounts WHERE {} ORDER BY id)";

TextSpan keep(std::string_view text, std::string& texts) {
  const TextSpan kept{texts.size(), text.size()};
  texts += text;
  return kept;
}

std::string_view view(const std::string& texts, TextSpan text) {
  return std::string_view(texts).substr(text.start, text.size);
}

/// The ids of the accounts, ascending, each once.
std::vector<std::int64_t> accounts_of(const BatchTokens& tokens) {
  std::vector<std::int64_t> ids;
  ids.reserve(tokens.rows.size());
  for (const auto& token : tokens.rows) {
    if (token.row.account != 0) ids.push_back(token.row.account);
  }
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

/// The tokens of the batch. Prepares the statement of each kind of reading once.
db::Rows token_rows(db::Connection& connection, const Lease& lease, const TokenReading& reading) {
  const auto name = fmt::format("tokens{}{}", reading.with_creation ? " with creation" : "",
                                reading.has_messages ? " with messages" : "");
  connection.prepare(name, fmt::format(tokens_sql, reading.with_creation ? ", created_at" : "",
                                       reading.has_messages ? ", message, recipient" : ""));
  return connection.run_prepared(name, lease.batch, lease.attempt);
}

/// Adds the rows to `tokens`. Returns the name of an action that is not known; empty if all are.
std::string add_tokens(const db::Rows& rows, const TokenReading& reading, BatchTokens& tokens) {
  tokens.rows.clear();
  tokens.texts.clear();
  tokens.has_messages = false;
  std::string unknown;
  for (const auto& from : rows) {
    BatchTokens::Token token{};
    auto& row = token.row;
    row.id = read_number(from.view("id"));
    row.account = read_number(from.view("account"));
    row.action = tokens.actions->find(from.view("action"));
    if (row.action == nullptr) unknown = from.text("action");
    row.secret = read_secret(from.view("secret"));
    token.code = keep(from.view("code"), tokens.texts);
    row.expires_at = read_number(from.view("expires_at"));
    row.state = parse_token_state(from.view("state"));
    if (reading.with_creation) row.created_at = read_number(from.view("created_at"));
    if (reading.has_messages && !from.is_null("message")) {
      tokens.has_messages = true;
      row.message = read_number(from.view("message"));
      row.recipient = static_cast<int>(read_number(from.view("recipient")));
    }
    tokens.rows.push_back(token);
  }
  return unknown;
}

db::Rows account_rows(db::Connection& connection, const std::vector<std::int64_t>& ids) {
  if (is_range(ids)) {
    connection.prepare("accounts of a range", fmt::format(accounts_sql, "id >= $1 AND id <= $2"));
    return connection.run_prepared("accounts of a range", ids.front(), ids.back());
  }
  connection.prepare("accounts of a list", fmt::format(accounts_sql, "id = ANY ($1::bigint[])"));
  return connection.run_prepared("accounts of a list", db::array_text(ids));
}

}  // namespace

bool is_range(const std::vector<std::int64_t>& ids) {
  const auto span = static_cast<std::uint64_t>(ids.back()) - static_cast<std::uint64_t>(ids.front());
  return span / accounts_per_needed < ids.size();
}

BatchTokens read_tokens(db::Connection& connection, const Lease& lease, const TokenReading& reading,
                        BatchTokens ahead) {
  const auto began = steady_now();
  if (ahead.lease == lease && began - ahead.read_at < longest_ahead) return ahead;
  BatchTokens tokens = std::move(ahead);
  tokens.lease = lease;
  tokens.read_at = began;
  tokens.actions = reading.actions;
  const auto rows = token_rows(connection, lease, reading);
  if (add_tokens(rows, reading, tokens).empty()) return tokens;
  tokens.actions = std::make_shared<const queue::Actions>(queue::read_actions(connection));
  if (const auto unknown = add_tokens(rows, reading, tokens); !unknown.empty())
    throw queue::unknown_action(unknown);
  return tokens;
}

void BatchReader::Accounts::clear() {
  rows.clear();
  texts.clear();
}

void BatchReader::Accounts::add(const db::Row& row) {
  rows.push_back({read_number(row.view("id")), keep(row.view("email"), texts), keep(row.view("login"), texts),
                  keep(row.view("status"), texts)});
}

void BatchReader::join(db::Connection& connection, BatchTokens& tokens, const Each& each,
                       const InTwoSessions& in_two_sessions) {
  tokens.lease = {};
  accounts_.clear();
  near_account_ = 0;
  if (tokens.rows.empty()) return;
  const auto ids = accounts_of(tokens);
  if (ids.empty()) {
    // All tokens are those of messages to addresses.
  } else if (in_two_sessions && ids.size() >= fewest_shared && !is_range(ids)) {
    read_parts(ids, in_two_sessions);
  } else {
    for (const auto& row : account_rows(connection, ids))
      accounts_.add(row);
  }
  join_rows(connection, tokens, each);
}

void BatchReader::read_parts(const std::vector<std::int64_t>& ids, const InTwoSessions& in_two_sessions) {
  const auto parts = std::max<std::size_t>(ids.size() / accounts_per_part, 2);
  parts_.resize(parts);
  const auto begin_of = [&](std::size_t part) {
    return ids.begin() + static_cast<std::ptrdiff_t>(ids.size() * part / parts);
  };
  std::atomic<std::size_t> next_part{0};
  in_two_sessions([&](db::Connection& connection) {
    for (auto i = next_part++; i < parts; i = next_part++) {
      auto& part = parts_[i];
      part.clear();
      for (const auto& row : account_rows(connection, {begin_of(i), begin_of(i + 1)}))
        part.add(row);
    }
  });
  for (const auto& part : parts_) {
    for (auto account : part.rows) {
      account.email.start += accounts_.texts.size();
      account.login.start += accounts_.texts.size();
      account.status.start += accounts_.texts.size();
      accounts_.rows.push_back(account);
    }
    accounts_.texts += part.texts;
  }
}

void BatchReader::join_rows(db::Connection& connection, BatchTokens& tokens, const Each& each) {
  auto& rows = tokens.rows;
  const auto id_of = [&](std::size_t i) { return rows[i].row.message; };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto& [row, code] = rows[i];
    if (row.account != 0 && !set_account(row)) continue;
    row.code = view(tokens.texts, code);
    if (row.message) {
      auto* message =
          messages_.get(connection, *row.message, [&] { return messages_ahead(i, rows.size(), id_of); });
      // It was deleted.
      if (message == nullptr) continue;
      set_message(row, *message);
    }
    each(row);
  }
}

bool BatchReader::set_account(TokenRow& row) {
  const auto* account = find_account(row.account);
  if (account == nullptr) return false;
  const auto status = view(accounts_.texts, account->status);
  if (row.state == TokenState::wrong_status && status == row.action->account_status)
    row.state = TokenState::due;
  row.email = view(accounts_.texts, account->email);
  row.login = view(accounts_.texts, account->login);
  return true;
}

const BatchReader::Account* BatchReader::find_account(std::int64_t id) {
  for (const auto near : {near_account_, near_account_ + 1}) {
    if (near >= accounts_.rows.size() || accounts_.rows[near].id != id) continue;
    near_account_ = near;
    return &accounts_.rows[near];
  }
  const auto found =
      std::lower_bound(accounts_.rows.begin(), accounts_.rows.end(), id,
                       [](const Account& account, std::int64_t wanted) { return account.id < wanted; });
  if (found == accounts_.rows.end() || found->id != id) return nullptr;
  near_account_ = static_cast<std::size_t>(found - accounts_.rows.begin());
  return &*found;
}

}  // namespace mailroom::claim
