// Puts the operator's name into the record of what a command changes.
#pragma once

#include <string>

#include "db/connection.hpp"

namespace mailroom::queue {

/// The actor and the reason of an operation, for the record.
struct OperationAuthor {
  std::string actor;
  std::string reason;  ///< may be empty
};

/// The operator who runs this process, and `reason`. Throws Error(usage) if the database cannot hold the
/// reason: call it before anything is changed.
OperationAuthor operator_author(db::Connection& connection, const std::string& reason);

/// Sets both for the operations that the caller's transaction records.
void set_author(pqxx::transaction_base& transaction, const OperationAuthor& author);

}  // namespace mailroom::queue
