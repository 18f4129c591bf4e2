// Streams tokens and accounts by COPY, accounts as a range or a list of ids, reads messages in parts, and
// merges them in memory.

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

/// How long tokens that were read ahead are used: a reader of stdout may be slow in between.
constexpr std::chrono::seconds longest_ahead{1};

/// Two sessions read a list of accounts in parts of about so many, since one of them may begin late.
constexpr std::size_t accounts_per_part = 1000;

// Without an account the status that an action needs is the wrong one.
constexpr const char* tokens_sql = R"(
SELECT id, account, action, secret, code, expires_at,
       mailroom_token_state(action, consumed_at, expires_at, NULL,
                            (SELECT floor(extract(epoch FROM clock_timestamp()))::bigint)){}{}
FROM mailroom_batch_rows({}, {}))";

// In the order of the ids, look-ups in a list that is far from the order of the tokens find most pages in the
// cache of the processor, which is faster than to look up in the order of the tokens and sign them meanwhile.
// It also lets two sessions share them.
constexpr const char* accounts_sql = R"(
SELECT id, email, login, status FROM accounts WHERE {} ORDER BY id)";

bool is_range(const std::vector<std::int64_t>& ids) {
  const auto span = static_cast<std::uint64_t>(ids.back()) - static_cast<std::uint64_t>(ids.front());
  return span / accounts_per_needed < ids.size();
}

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

/// Streams the tokens of a batch into `tokens`. Returns the name of an action that is not known; empty if all
/// are.
template <bool with_creation, bool has_messages>
std::string stream_tokens(db::Connection& connection, const std::string& sql, BatchTokens& tokens) {
  constexpr std::size_t columns = 7 + (with_creation ? 1 : 0) + (has_messages ? 2 : 0);
  tokens.rows.clear();
  tokens.texts.clear();
  tokens.has_messages = false;
  std::string unknown;
  connection.copy_out<columns>(sql, [&](const auto& fields) {
    // In the order of tokens_sql.
    const auto* field = fields.data();
    BatchTokens::Token token{};
    auto& row = token.row;
    row.id = read_number(*field++);
    row.account = read_number(*field++);
    row.action = tokens.actions->find(*field);
    if (row.action == nullptr) unknown = *field;
    row.secret = read_secret(*++field);
    token.code = keep(*++field, tokens.texts);
    row.expires_at = read_number(*++field);
    row.state = parse_token_state(*++field);
    if constexpr (with_creation) row.created_at = read_number(*++field);
    if constexpr (has_messages) {
      if (const auto message = *++field; !message.empty()) row.message = read_number(message);
      if (row.message) tokens.has_messages = true;
      row.recipient = static_cast<int>(read_number(*++field));
    }
    tokens.rows.push_back(token);
  });
  return unknown;
}

template <typename Each>
void read_accounts_of(db::Connection& connection, const std::vector<std::int64_t>& ids, const Each& each) {
  connection.copy_out<4>(fmt::format(accounts_sql, accounts_condition(ids)), each);
}

}  // namespace

std::string accounts_condition(const std::vector<std::int64_t>& ids) {
  if (is_range(ids)) return fmt::format("id >= {} AND id <= {}", ids.front(), ids.back());
  // In a subquery: of a constant list the planner estimates each element.
  return fmt::format("id = ANY ((SELECT '{}'::bigint[])::bigint[])", db::array_text(ids));
}

BatchTokens read_tokens(db::Connection& connection, const Lease& lease, const TokenReading& reading,
                        BatchTokens ahead) {
  const auto began = steady_now();
  if (ahead.lease == lease && began - ahead.read_at < longest_ahead) return ahead;
  BatchTokens tokens = std::move(ahead);
  tokens.lease = lease;
  tokens.read_at = began;
  tokens.actions = reading.actions;
  const auto sql =
      fmt::format(tokens_sql, reading.with_creation ? ", created_at" : "",
                  reading.has_messages ? ", message, recipient" : "", lease.batch, lease.attempt);
  const auto stream = [&] {
    if (reading.has_messages) {
      return reading.with_creation ? stream_tokens<true, true>(connection, sql, tokens)
                                   : stream_tokens<false, true>(connection, sql, tokens);
    }
    return reading.with_creation ? stream_tokens<true, false>(connection, sql, tokens)
                                 : stream_tokens<false, false>(connection, sql, tokens);
  };
  if (stream().empty()) return tokens;
  tokens.actions = std::make_shared<const queue::Actions>(queue::read_actions(connection));
  if (const auto unknown = stream(); !unknown.empty()) throw queue::unknown_action(unknown);
  return tokens;
}

void BatchReader::Accounts::clear() {
  rows.clear();
  texts.clear();
}

template <typename Fields>
void BatchReader::Accounts::add(const Fields& fields) {
  const auto& [id, email, login, status] = fields;
  rows.push_back({read_number(id), keep(email, texts), keep(login, texts), keep(status, texts)});
}

void BatchReader::join(db::Connection& connection, BatchTokens& tokens, const Each& each,
                       const InTwoSessions& in_two_sessions) {
  tokens.lease = {};
  accounts_.clear();
  next_row_ = 0;
  near_account_ = 0;
  if (tokens.rows.empty()) return;
  const auto ids = accounts_of(tokens);
  if (ids.empty()) {
    // All tokens are those of messages to addresses.
  } else if (in_two_sessions && !is_range(ids)) {
    read_parts(ids, in_two_sessions);
  } else {
    read_accounts_of(connection, ids, [&](const auto& fields) {
      accounts_.add(fields);
      // The session that streams accounts cannot read messages meanwhile.
      if (!tokens.has_messages) join_up_to(accounts_.rows.back().id, tokens, each);
    });
  }
  if (tokens.has_messages) return join_messages(connection, tokens, each);
  join_up_to(ids.back(), tokens, each);
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
      read_accounts_of(connection, {begin_of(i), begin_of(i + 1)},
                       [&](const auto& fields) { part.add(fields); });
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

void BatchReader::join_up_to(std::int64_t last, BatchTokens& tokens, const Each& each) {
  for (; next_row_ < tokens.rows.size() && tokens.rows[next_row_].row.account <= last; ++next_row_) {
    auto& [row, code] = tokens.rows[next_row_];
    if (!set_account(row)) continue;
    row.code = view(tokens.texts, code);
    each(row);
  }
}

void BatchReader::join_messages(db::Connection& connection, BatchTokens& tokens, const Each& each) {
  auto& rows = tokens.rows;
  const auto id_of = [&](std::size_t i) { return rows[i].row.message; };
  for (; next_row_ < rows.size(); ++next_row_) {
    auto& [row, code] = rows[next_row_];
    if (row.account != 0 && !set_account(row)) continue;
    row.code = view(tokens.texts, code);
    if (row.message) {
      auto* message = messages_.get(connection, *row.message,
                                    [&] { return messages_ahead(next_row_, rows.size(), id_of); });
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
