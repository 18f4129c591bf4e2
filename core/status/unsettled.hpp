// What has happened to a queue and is not settled yet: batches that were given up, and a database that went
// back to an older state.
#pragma once

#include <cstdint>
#include <optional>
#include <pqxx/pqxx>
#include <string>
#include <vector>

#include "base/clock.hpp"

namespace mailroom::status {

/// A batch that was given up, of whose tokens somebody may still want a mail.
struct DeadBatch {
  std::int64_t id = 0;
  std::int64_t tokens = 0;  ///< those that nobody has had emitted again, revoked, deleted or used since
  std::string claimed_by{};
  Milliseconds age{};
};

/// Removes what is settled, counts the tokens of the others, and orders them: the newest first.
void keep_unsettled(pqxx::transaction_base& transaction, std::vector<DeadBatch>& dead);

/// A consumer found an older state of the database than it knew.
struct WentBack {
  std::string actor;        ///< the consumer
  std::int64_t newest = 0;  ///< batch that it found
  std::int64_t known = 0;   ///< the newest that it had claimed
  Milliseconds age{};
};

/// False for a role that may not read operations, or from whom row security hides some. Within the caller's
/// transaction.
bool may_read_operations(pqxx::transaction_base& transaction);

/// How many tokens were revoked within an hour that the queue had not got accepted, and that nobody has used.
/// For a role that may_read_operations().
std::int64_t count_revoked_unsent(pqxx::transaction_base& transaction, const std::string& queue);

/// The last such find, for a day, or until an operator has moved a cursor or had tokens emitted again.
/// Nullopt for a role that may not read operations, or from whom row security hides some.
std::optional<WentBack> read_went_back(pqxx::transaction_base& transaction);

}  // namespace mailroom::status
