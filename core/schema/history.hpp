#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "db/connection.hpp"

namespace mailroom {

/// A row of mailroom_schema_history.
struct SchemaChange {
  std::int64_t at = 0;  ///< microseconds since 1970
  std::int64_t version = 0;
  std::string name{};
  std::string direction{};  ///< up, down, adopt, baseline or force
  std::int64_t duration_ms = 0;
  std::string actor{};
  std::string db_user{};
  std::string reason{};
};

/// Reads mailroom_schema_history, oldest first. Empty if another tool created the schema.
std::vector<SchemaChange> read_schema_history(pqxx::transaction_base& transaction);

}  // namespace mailroom
