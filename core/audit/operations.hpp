#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/id_range.hpp"
#include "db/connection.hpp"

namespace mailroom {

/// A row of mailroom_operations: an action of an operator or an application.
struct Operation {
  std::int64_t id = 0;
  std::int64_t at = 0;  ///< microseconds since 1970
  std::string kind{};   ///< rewind, replay, suspend, restore or prune
  std::string actor{};
  std::string db_user{};
  std::string reason{};
  std::string queue{};
  std::optional<std::int64_t> account{};
  std::string details{};                    ///< a JSON object
  std::vector<IdRange> tokens{};            ///< those of the requested tokens that it rewound or replayed
  std::vector<std::int64_t> cut_batches{};  ///< open batches that it removed tokens from
  bool is_forward = false;                  ///< it moved the cursor forward and skipped the tokens between
};

// Each function runs within the caller's transaction.

/// Returns the operations on an account, oldest first.
std::vector<Operation> operations_on_account(pqxx::transaction_base& transaction, std::int64_t account);

/// Returns the rewinds and replays since `since` (seconds since 1970) that touched one of `tokens` or removed
/// tokens from open batches, oldest first.
std::vector<Operation> operations_on_tokens(pqxx::transaction_base& transaction,
                                            const std::vector<IdRange>& tokens, std::int64_t since);

/// Returns the operations from `since` to before `until` (seconds since 1970): the newest `limit`, newest
/// first.
std::vector<Operation> list_operations(pqxx::transaction_base& transaction, std::int64_t since,
                                       std::int64_t until, std::int64_t limit);

std::int64_t count_operations(pqxx::transaction_base& transaction, std::int64_t since, std::int64_t until);

}  // namespace mailroom
