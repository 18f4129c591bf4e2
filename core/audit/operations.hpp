#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/id_range.hpp"
#include "db/connection.hpp"

namespace mailroom {

/// What an operator or an application did, as mailroom_operations records it.
struct Operation {
  std::int64_t id = 0;
  std::int64_t at = 0;  ///< microseconds since 1970
  std::string kind{};   ///< rewind, replay, suspend, restore or prune
  std::string actor{};
  std::string db_user{};
  std::string reason{};
  std::string queue{};
  std::optional<std::int64_t> account{};
  std::string details{};          ///< a JSON object
  std::vector<IdRange> tokens{};  ///< of those asked for, the ones that it moved the cursor over or replayed
  std::vector<std::int64_t> cut_batches{};  ///< open batches that it took tokens out of
  bool is_forward = false;                  ///< it moved the cursor forward, past what lies between
};

/// What was done to an account, oldest first.
std::vector<Operation> operations_on_account(pqxx::transaction_base& transaction, std::int64_t account);

/// The rewinds and replays since `since` (seconds since 1970) that touched one of `tokens` or took tokens out
/// of open batches, oldest first.
std::vector<Operation> operations_on_tokens(pqxx::transaction_base& transaction,
                                            const std::vector<IdRange>& tokens, std::int64_t since);

/// All of `since` to before `until` (seconds since 1970), the newest `limit`, newest first.
std::vector<Operation> list_operations(pqxx::transaction_base& transaction, std::int64_t since,
                                       std::int64_t until, std::int64_t limit);

std::int64_t count_operations(pqxx::transaction_base& transaction, std::int64_t since, std::int64_t until);

}  // namespace mailroom
