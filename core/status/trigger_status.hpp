// Which of mailroom's triggers do not fire, and where a setting keeps all of them from firing.
#pragma once

#include <string>
#include <vector>

#include "db/connection.hpp"

namespace mailroom {

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

}  // namespace mailroom
