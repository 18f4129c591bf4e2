#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "accounts/account_lookup.hpp"
#include "db/connection.hpp"

namespace mailroom {

/// What became of one account.
struct StatusChange {
  AccountRecord account;
  std::string before;
  std::string after;
  /// Due before a suspension or after its end, and not handed on by the queue: what is passed over from now
  /// on, or was passed over meanwhile.
  std::vector<std::int64_t> tokens;
};

/// Within the caller's transaction, which set_author belongs to: suspends each account that is not suspended
/// yet. Locks the accounts in the order of their ids, so two calls never wait for each other in a circle.
/// Throws Error(unusable) for an account that has gone meanwhile. Tokens are those of `queue`.
std::vector<StatusChange> suspend_accounts(pqxx::transaction_base& transaction, const std::string& queue,
                                           const std::vector<AccountRecord>& accounts);

/// The way back: an account that was never activated becomes provisioned again, any other active. Of one that
/// is not suspended it only reports. Otherwise as suspend_accounts; tokens ahead of the cursor are left out,
/// since they come of themselves.
std::vector<StatusChange> restore_accounts(pqxx::transaction_base& transaction, const std::string& queue,
                                           const std::vector<AccountRecord>& accounts);

}  // namespace mailroom
