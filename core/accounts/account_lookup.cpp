// Looks a name up in all three columns, and suggests the account whose name differs only in case.

#include "accounts/account_lookup.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include "base/printable.hpp"
#include "base/secret_text.hpp"
#include "base/text.hpp"
#include "mail/address.hpp"

namespace mailroom::accounts {
namespace {

/// A parsed name: the values to search for in each column.
struct AccountName {
  std::optional<std::int64_t> id;
  std::string email;
  std::string login;
};

AccountName parse_name(const std::string& name) {
  const auto rest = name.substr(name.find(':') + 1);
  if (name.starts_with("id:")) return {.id = parse_id(rest), .email = "", .login = ""};
  if (name.starts_with("email:"))
    return {.id = std::nullopt, .email = mail::address_of_mailbox(rest), .login = ""};
  if (name.starts_with("login:")) return {.id = std::nullopt, .email = "", .login = rest};
  return {.id = parse_id(name), .email = mail::address_of_mailbox(name), .login = name};
}

/// A token is not sent to the server in place of a name, wherever it was read from: the server may log it.
void refuse_token(const std::string& name) {
  if (name.starts_with("login:") || !holds_token(name)) return;
  throw Error(ExitCode::usage,
              "a name looks like a token or the secret of one, which no account is looked up by", token_hint);
}

std::vector<AccountRecord> read_accounts(const db::Rows& rows) {
  std::vector<AccountRecord> accounts;
  for (const auto& row : rows) {
    accounts.push_back({.id = row.number("id"),
                        .email = row.text("email"),
                        .login = row.text("login"),
                        .status = row.text("status")});
  }
  return accounts;
}

/// True if `name` contains a character that has another case.
bool has_capitals(const std::string& name) {
  const auto parsed = parse_name(name);
  const auto& text = parsed.login.empty() ? parsed.email : parsed.login;
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isalpha(c) != 0 || c >= 0x80; });
}

/// The names of accounts that match `condition`, with the prefix that was typed. $1 and $2 are the email and
/// the login that were not found.
std::vector<std::string> names_where(pqxx::transaction_base& transaction, const std::string& name,
                                     const std::string& condition) {
  const auto parsed = parse_name(name);
  const bool has_prefix = parsed.email.empty() != parsed.login.empty();
  const auto prefix = has_prefix ? name.substr(0, name.find(':') + 1) : std::string();
  std::vector<std::string> names;
  for (
      const auto& row : db::Connection::execute(
          transaction,
          "SELECT CASE WHEN lower(email) = lower($1) THEN email ELSE login END AS name FROM accounts WHERE " +
              condition,
          parsed.email, parsed.login))
    names.push_back(prefix + shown_text(row.text("name")));
  return names;
}

/// What `body` returns of a transaction whose statements may take `limit`, or nothing if one takes longer.
template <typename Body>
auto within(db::Connection& connection, const char* limit, const Body& body)
    -> std::optional<decltype(body(std::declval<pqxx::work&>()))> {
  try {
    return connection.transact([&](pqxx::work& transaction) {
      db::Connection::execute(transaction, fmt::format("SET LOCAL statement_timeout = '{}'", limit));
      return body(transaction);
    });
  } catch (const db::DatabaseError& error) {
    if (error.sqlstate() != db::sqlstate::query_cancelled) throw;
    return std::nullopt;
  }
}

/// SQL for the usual spellings of a parameter: lower case, capitals, and a capital at each word or only at
/// the first.
std::string usual_spellings(std::string_view parameter) {
  return fmt::format(
      "(ARRAY[lower({0}), upper({0}), initcap({0}), upper(left({0}, 1)) || lower(substr({0}, 2))])",
      parameter);
}

/// Names that differ from `name` only in case: first the usual spellings, by index, then any other, by
/// reading the accounts for at most half a second.
std::vector<std::string> names_in_other_capitals(db::Connection& connection, const std::string& name) {
  if (!has_capitals(name)) return {};
  auto names = connection.alone([&](pqxx::transaction_base& transaction) {
    return names_where(
        transaction, name,
        fmt::format("email = ANY {} OR login = ANY {}", usual_spellings("$1"), usual_spellings("$2")));
  });
  // Of an address each account is named: whoever has it in other letters may be somebody else.
  if (!names.empty() && name.find('@') == std::string::npos) return names;
  return within(connection, "500ms",
                [&](pqxx::work& transaction) {
                  return names_where(transaction, name,
                                     "lower(email) = lower($1) OR lower(login) = lower($2) LIMIT 3");
                })
      .value_or(std::move(names));
}

/// Suggests existing names for the first three missing ones; each may cost a read of the whole table.
std::string hint_for_missing(db::Connection& connection, const std::vector<std::string>& missing) {
  std::vector<std::string> meant;
  for (std::size_t i = 0; i < std::min<std::size_t>(missing.size(), 3); ++i) {
    const auto names = names_in_other_capitals(connection, missing[i]);
    meant.insert(meant.end(), names.begin(), names.end());
  }
  if (meant.empty()) return "addresses and logins are case-sensitive";
  return fmt::format("did you mean: {}; names are case-sensitive", joined(meant, ", "));
}

std::string quoted(const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  for (const auto& name : names)
    shown.push_back(shown_text(name));
  return fmt::format("'{}'", joined(shown, "', '"));
}

void require_one(const std::string& name, const std::vector<AccountRecord>& candidates) {
  if (candidates.size() < 2) return;
  std::vector<std::int64_t> ids;
  for (const auto& account : candidates)
    ids.push_back(account.id);
  throw Error(
      ExitCode::usage,
      fmt::format("'{}' names {} accounts: {}", shown_text(name), candidates.size(), joined(ids, " and ")),
      fmt::format("choose one with id:{}, email:{} or login:{}", candidates[0].id, shown_text(name),
                  shown_text(name)));
}

}  // namespace

std::vector<AccountRecord> find_candidates(db::Connection& connection, const std::string& name) {
  const auto parsed = parse_name(name);
  const auto rows = connection.run(R"(
SELECT id, email, login, status FROM accounts
WHERE id = $1::bigint OR email = nullif($2, '') OR login = nullif($3, '')
ORDER BY id)",
                                   parsed.id.value_or(-1), parsed.email, parsed.login);
  return read_accounts(rows);
}

std::optional<std::int64_t> parse_id(std::string_view text) {
  std::int64_t id = 0;
  const auto* end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, id);
  if (failure != std::errc() || rest != end || id < 0) return std::nullopt;
  return id;
}

std::vector<AccountRecord> accounts_in_other_case(db::Connection& connection, const std::string& address) {
  constexpr const char* columns = "SELECT id, email, login, status FROM accounts WHERE email <> $1 AND ";
  const auto by_index = connection.run(
      columns + fmt::format("email = ANY {} ORDER BY id LIMIT 10", usual_spellings("$1")), address);
  const auto by_scan = within(connection, "500ms", [&](pqxx::work& transaction) {
    return db::Connection::execute(
        transaction, columns + std::string("lower(email) = lower($1) ORDER BY id LIMIT 10"), address);
  });
  return read_accounts(by_scan.value_or(by_index));
}

MailedTo find_mailed_to(db::Connection& connection, const std::string& address) {
  const auto rows = within(connection, "5s", [&](pqxx::work& transaction) {
    return db::Connection::execute(transaction, R"(
SELECT DISTINCT t.account, CASE WHEN t.account IS NULL THEN t.message END AS message
FROM mailroom_deliveries d JOIN tokens t ON t.id = d.token AND floor(extract(epoch FROM d.last_at)) >= t.created_at
WHERE mailroom_canonical(d.address) = mailroom_canonical($1) OR EXISTS (
  SELECT FROM jsonb_array_elements(d.earlier_attempts) e WHERE mailroom_canonical(e->>'address') = mailroom_canonical($1))
ORDER BY 2 DESC, 1 LIMIT 20)",
                                   address);
  });
  MailedTo found{.is_complete = rows.has_value()};
  for (const auto& row : rows.value_or(db::Rows())) {
    if (const auto account = row.optional<std::int64_t>("account")) found.accounts.push_back(*account);
    if (const auto message = row.optional<std::int64_t>("message")) found.messages.push_back(*message);
  }
  return found;
}

std::vector<AccountRecord> find_accounts(db::Connection& connection, const std::vector<std::string>& names) {
  std::vector<AccountRecord> accounts;
  std::vector<std::string> missing;
  for (const auto& name : names)
    refuse_token(name);
  for (const auto& name : names) {
    auto candidates = find_candidates(connection, name);
    require_one(name, candidates);
    if (candidates.empty()) {
      missing.push_back(name);
      continue;
    }
    const auto known = std::any_of(accounts.begin(), accounts.end(),
                                   [&](const auto& account) { return account.id == candidates[0].id; });
    if (!known) accounts.push_back(std::move(candidates[0]));
  }
  if (!missing.empty()) {
    throw Error(ExitCode::unusable, fmt::format("no account has the id, email or login {}", quoted(missing)),
                hint_for_missing(connection, missing));
  }
  return accounts;
}

}  // namespace mailroom::accounts
