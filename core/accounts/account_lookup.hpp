#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "db/connection.hpp"

namespace mailroom {

struct AccountRecord {
  std::int64_t id = 0;
  std::string email;
  std::string login;
  std::string status;           ///< provisioned, active or suspended
  std::int64_t created_at = 0;  ///< seconds since 1970
};

/// The accounts that `names` name, in that order and each once. A name is an id, an email or a login;
/// `id:7`, `email:…` and `login:…` say which, where one name is the id of one account and the login of
/// another. Throws Error(unusable) that names all that are not found, with those that differ in capitals
/// alone for a hint, and Error(usage) for a name of several accounts.
std::vector<AccountRecord> find_accounts(Connection& connection, const std::vector<std::string>& names);

}  // namespace mailroom
