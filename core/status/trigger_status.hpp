// What keeps an application's tokens from the queue: triggers that do not fire, and inserts into another
// schema.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "db/connection.hpp"

namespace mailroom::status {

/// Mailroom's tables in another schema of the database, where tokens wait and no collector is connected.
struct OtherQueue {
  std::string schema;
  std::int64_t waiting = 0;  ///< at most 1,000
};

/// The first such schema that this role may read.
std::optional<OtherQueue> find_other_queue(pqxx::transaction_base& transaction);

/// A trigger of the schema that fires in no session of an application.
struct SilentTrigger {
  std::string name;
  bool is_missing = false;  ///< false: it is disabled, or fires only on replicas
};

/// Where session_replication_role is `replica`, so that no trigger fires.
struct ReplicaSetting {
  std::string where;  ///< `this database`, `the role app`
  std::string fix;    ///< the statements that end it
};

struct TriggerStatus {
  std::vector<SilentTrigger> silent{};
  std::vector<ReplicaSetting> replica{};
};

/// Runs within the caller's transaction.
TriggerStatus read_trigger_status(pqxx::transaction_base& transaction);

}  // namespace mailroom::status
