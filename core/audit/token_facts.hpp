#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "audit/token_status.hpp"

namespace mailroom {

/// The tokens of an account, newest first.
struct AccountTokens {
  std::vector<TokenFacts> newest{};  ///< at most `limit`
  std::int64_t total = 0;
};

// Both functions run within the caller's transaction and leave batches, operations and queues of the tokens
// empty. `now` is in seconds since 1970.

AccountTokens read_tokens_of(pqxx::transaction_base& transaction, std::int64_t account, std::int64_t now,
                             std::int64_t limit);

/// Returns the token `id`; if it does not exist, with times estimated from its neighbours. Throws
/// Error(unusable) for an id that the sequence has not reached.
TokenFacts read_token(pqxx::transaction_base& transaction, std::int64_t id, std::int64_t now);

}  // namespace mailroom
