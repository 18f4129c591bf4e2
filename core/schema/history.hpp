// The changes of the schema in the order in which they were made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "db/connection.hpp"

namespace mailroom {

/// A row of mailroom_schema_history.
struct SchemaChange {
  Moment at{};
  std::int64_t version = 0;
  std::string name{};
  std::string direction{};  ///< up, down, adopt, baseline or force
  Milliseconds duration{};
  std::string actor{};
  std::string db_user{};
  std::string reason{};
};

/// Reads mailroom_schema_history, oldest first. Empty if another tool created the schema.
std::vector<SchemaChange> read_schema_history(pqxx::transaction_base& transaction);

}  // namespace mailroom
