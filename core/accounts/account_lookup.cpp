#include "accounts/account_lookup.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>

namespace mailroom {
namespace {

/// A name taken apart: what it may be, and the text that the table is asked for.
struct AccountName {
  std::optional<std::int64_t> id;
  std::string email;
  std::string login;
};

std::optional<std::int64_t> as_id(std::string_view text) {
  std::int64_t id = 0;
  const auto* end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, id);
  if (failure != std::errc() || rest != end || id < 0) return std::nullopt;
  return id;
}

AccountName parse_name(const std::string& name) {
  const auto after = [&](std::string_view prefix) -> std::optional<std::string> {
    if (name.compare(0, prefix.size(), prefix) != 0) return std::nullopt;
    return name.substr(prefix.size());
  };
  if (const auto id = after("id:")) return {.id = as_id(*id), .email = "", .login = ""};
  if (const auto email = after("email:")) return {.id = std::nullopt, .email = *email, .login = ""};
  if (const auto login = after("login:")) return {.id = std::nullopt, .email = "", .login = *login};
  return {.id = as_id(name), .email = name, .login = name};
}

std::vector<AccountRecord> find_candidates(Connection& connection, const std::string& name) {
  const auto parsed = parse_name(name);
  const auto rows = connection.run(
      "SELECT id, email, login, status, created_at FROM accounts "
      "WHERE id = $1::bigint OR email = nullif($2, '') OR login = nullif($3, '') ORDER BY id",
      parsed.id.value_or(-1), parsed.email, parsed.login);
  std::vector<AccountRecord> found;
  for (const auto& row : rows) {
    found.push_back({.id = row[0].as<std::int64_t>(),
                     .email = row[1].c_str(),
                     .login = row[2].c_str(),
                     .status = row[3].c_str(),
                     .created_at = row[4].as<std::int64_t>()});
  }
  return found;
}

void require_one(const std::string& name, const std::vector<AccountRecord>& candidates) {
  if (candidates.size() < 2) return;
  std::vector<std::int64_t> ids;
  for (const auto& account : candidates)
    ids.push_back(account.id);
  throw Error(
      ExitCode::usage,
      fmt::format("'{}' names {} accounts: {}", name, candidates.size(), fmt::join(ids, " and ")),
      fmt::format("say which one is meant: id:{}, email:{} or login:{}", candidates[0].id, name, name));
}

}  // namespace

std::vector<AccountRecord> find_accounts(Connection& connection, const std::vector<std::string>& names) {
  std::vector<AccountRecord> accounts;
  std::vector<std::string> missing;
  for (const auto& name : names) {
    auto candidates = find_candidates(connection, name);
    require_one(name, candidates);
    if (candidates.empty()) {
      missing.push_back("'" + name + "'");
      continue;
    }
    const auto known = std::any_of(accounts.begin(), accounts.end(),
                                   [&](const auto& account) { return account.id == candidates[0].id; });
    if (!known) accounts.push_back(std::move(candidates[0]));
  }
  if (!missing.empty()) {
    throw Error(ExitCode::unusable,
                fmt::format("no account has the id, email or login {}", fmt::join(missing, ", ")),
                "addresses and logins are compared exactly, capitals included");
  }
  return accounts;
}

}  // namespace mailroom
