// Notices that applications insert into another schema than the one that is collected.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "db/connection.hpp"

namespace mailroom {

/// Mailroom's tables in another schema of the database, where tokens wait and no collector is connected.
struct OtherQueue {
  std::string schema;
  std::int64_t waiting = 0;  ///< at most 1,000
};

/// The first such schema that this role may read.
std::optional<OtherQueue> find_other_queue(pqxx::transaction_base& transaction);

}  // namespace mailroom
