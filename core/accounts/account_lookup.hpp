// How a command finds the accounts that an operator names, by id, email or login.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "db/connection.hpp"

namespace mailroom {

struct AccountRecord {
  std::int64_t id = 0;
  std::string email{};
  std::string login{};
  std::string status{};  ///< provisioned, active or suspended
};

/// Reads the id of a row, a number from 0 on; nullopt for anything else.
std::optional<std::int64_t> parse_id(std::string_view text);

/// Returns the accounts with these names, in that order and without duplicates. A name is an id, an email or
/// a login; the prefixes `id:7`, `email:…` and `login:…` resolve ambiguous names. Throws Error(unusable) that
/// lists all missing names, with names that differ only in case as a hint, and Error(usage) for a name of
/// several accounts.
std::vector<AccountRecord> find_accounts(Connection& connection, const std::vector<std::string>& names);

}  // namespace mailroom
