#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "accounts/account_lookup.hpp"
#include "audit/timeline.hpp"
#include "audit/token_status.hpp"

namespace mailroom {

/// Which part of a history to read.
struct AuditRequest {
  std::string queue{};  ///< a token's outcome is for this queue, if there are several
  std::string since{};  ///< as parse_moment reads it, by the server's clock; empty for no bound
  std::string until{};
  std::int64_t limit = 1000;  ///< entries, and tokens of an account
};

struct TokenReport {
  TokenFacts token;
  TokenStatus status;
};

/// The history of one account, token or batch.
struct History {
  std::int64_t now = 0;                    ///< the server's clock, in seconds since 1970
  bool is_of_account = false;              ///< false for the history of a token or a batch
  std::int64_t account_id = 0;             ///< 0 if unknown
  std::optional<AccountRecord> account{};  ///< nullopt if it was deleted
  std::optional<BatchRecord> batch{};
  std::vector<TokenReport> tokens{};  ///< at most the newest 20, newest first
  std::int64_t tokens_total = 0;
  Timeline timeline{};
};

// Each function reads one snapshot, in a transaction of its own. It throws Error(usage) for an invalid moment
// or an empty period. The functions for accounts and tokens throw DatabaseError MR001 for an unknown queue.

/// `account` may have been deleted. Throws Error(unusable) if there is no record of it.
History read_account_history(Connection& connection, std::int64_t account, const AuditRequest& request);
/// Throws Error(unusable) if there is no record of `token`.
History read_token_history(Connection& connection, std::int64_t token, const AuditRequest& request);
/// Throws Error(unusable) if there is no record of `batch`.
History read_batch_history(Connection& connection, std::int64_t batch, const AuditRequest& request);

}  // namespace mailroom
