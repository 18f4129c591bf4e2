// The change behind mailroom suspend: the status of accounts, and the tokens that it makes due or not.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "accounts/account_lookup.hpp"
#include "db/connection.hpp"

namespace mailroom::accounts {

/// The outcome for one account.
struct StatusChange {
  AccountRecord account;
  std::string before;
  std::string after;
  /// Tokens that were due before the suspension, or are due after its end, and that a queue has not emitted:
  /// they will be skipped, or were skipped meanwhile.
  std::vector<std::int64_t> tokens;
  std::map<std::string, std::vector<std::int64_t>> by_queue{};  ///< the same; each queue has its own
};

/// Suspends each account that is not suspended yet, within the caller's transaction, after set_author().
/// Locks the accounts in id order, so that two calls cannot deadlock. Throws Error(unusable) for an account
/// that has been removed meanwhile. Tokens are those of `queues`.
std::vector<StatusChange> suspend_accounts(pqxx::transaction_base& transaction,
                                           const std::vector<std::string>& queues,
                                           const std::vector<AccountRecord>& accounts);

/// Ends suspensions: an account that was never activated becomes provisioned again, any other active. Only
/// reports accounts that are not suspended. Otherwise as suspend_accounts(), but `tokens` excludes tokens
/// ahead of the cursor, which will be emitted anyway.
std::vector<StatusChange> restore_accounts(pqxx::transaction_base& transaction,
                                           const std::vector<std::string>& queues,
                                           const std::vector<AccountRecord>& accounts);

}  // namespace mailroom::accounts
