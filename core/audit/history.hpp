#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "accounts/account_lookup.hpp"
#include "audit/fate.hpp"
#include "audit/timeline.hpp"

namespace mailroom {

/// What of a history is wanted.
struct AuditRequest {
  std::string queue{};  ///< the one that a token's fate is told of, where there are several
  std::string since{};  ///< what parse_moment reads, as of the server's clock; empty for the whole life
  std::string until{};
  std::int64_t limit = 1000;  ///< entries, and tokens of an account
};

struct TokenStory {
  TokenFacts token;
  TokenFate fate;
};

/// The life of one account, token or batch.
struct History {
  std::int64_t now = 0;                    ///< the server's clock, in seconds since 1970
  bool is_of_account = false;              ///< and not of a token of it
  std::int64_t account_id = 0;             ///< 0 when there is none to name
  std::optional<AccountRecord> account{};  ///< nothing for one that was removed
  std::optional<BatchRecord> batch{};
  std::vector<TokenStory> tokens{};  ///< the newest 20 at most, newest first
  std::int64_t tokens_total = 0;
  Timeline timeline{};
};

/// Each reads one snapshot, in a transaction of its own, and throws Error(usage) for a moment that does not
/// parse, or an empty period; those that tell a token's fate throw DatabaseError MR001 for an unknown queue.
///
/// Of an account, or of one that was removed. Throws Error(unusable) when nothing is known of `account`.
History read_account_history(Connection& connection, std::int64_t account, const AuditRequest& request);
/// Throws Error(unusable) when nothing is known of `token`.
History read_token_history(Connection& connection, std::int64_t token, const AuditRequest& request);
/// Throws Error(unusable) when there is no such batch.
History read_batch_history(Connection& connection, std::int64_t batch, const AuditRequest& request);

}  // namespace mailroom
