#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "audit/fate.hpp"

namespace mailroom {

/// What the table says of the tokens of an account, newest first.
struct AccountTokens {
  std::vector<TokenFacts> newest{};  ///< `limit` at most
  std::int64_t total = 0;
};

/// Without batches, operations and queues, which read_fates adds. `now` is in seconds since 1970.
AccountTokens read_tokens_of(pqxx::transaction_base& transaction, std::int64_t account, std::int64_t now,
                             std::int64_t limit);

/// The token `id`; where it is not there, its neighbours say when it was made. Throws Error(unusable) for an
/// id that the sequence has not reached.
TokenFacts read_token(pqxx::transaction_base& transaction, std::int64_t id, std::int64_t now);

}  // namespace mailroom
