#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "db/connection.hpp"

namespace mailroom {

/// A migration that was applied, taken back or adopted.
struct SchemaChange {
  std::int64_t at = 0;  ///< microseconds since 1970
  std::int64_t version = 0;
  std::string name{};
  std::string direction{};  ///< up, down or adopt
  std::int64_t duration_ms = 0;
  std::string actor{};
  std::string db_user{};
  std::string reason{};
};

/// All that mailroom_schema_history holds, oldest first; nothing where another tool made the schema.
std::vector<SchemaChange> read_schema_history(pqxx::transaction_base& transaction);

}  // namespace mailroom
