// How a command finds the accounts that an operator names, by id, email or login.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "db/connection.hpp"

namespace mailroom::accounts {

struct AccountRecord {
  std::int64_t id = 0;
  std::string email{};
  std::string login{};
  std::string status{};  ///< provisioned, active or suspended
};

/// Reads the id of a row, a number from 0 on; nullopt for anything else.
std::optional<std::int64_t> parse_id(std::string_view text);

/// Returns the accounts whose email differs from `address` in nothing but the case of letters, by id: those
/// with a usual spelling, and others if reading the accounts takes less than half a second.
std::vector<AccountRecord> accounts_in_other_case(db::Connection& connection, const std::string& address);

/// Returns the accounts whose id, email or login is `name`, by id: by index, and none if there is none.
std::vector<AccountRecord> find_candidates(db::Connection& connection, const std::string& name);

/// Accounts and messages whose mails went to an address, whatever the account's address is now.
struct MailedTo {
  std::vector<std::int64_t> accounts{};
  std::vector<std::int64_t> messages{};  ///< without an account
  bool is_complete = true;               ///< false: reading the records took too long
};
MailedTo find_mailed_to(db::Connection& connection, const std::string& address);

/// Returns the accounts with these names, in that order and without duplicates. A name is an id, an email or
/// a login, and an email may be a mailbox; the prefixes `id:7`, `email:…` and `login:…` resolve ambiguous
/// names. Throws Error(unusable) that lists all missing names, with names that differ only in case as a hint,
/// and Error(usage) for a name of several accounts.
std::vector<AccountRecord> find_accounts(db::Connection& connection, const std::vector<std::string>& names);

}  // namespace mailroom::accounts
