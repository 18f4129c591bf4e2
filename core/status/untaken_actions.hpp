// Actions whose tokens no queue takes, so that nobody is mailed for them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "db/connection.hpp"

namespace mailroom {

struct UntakenAction {
  std::string name;  ///< as people type it: `recovery`
  /// That are due, among the newest 10,000; since `dropped_at`, if that is known. Otherwise a queue may have
  /// taken them.
  std::int64_t tokens = 0;
  std::optional<Moment>
      dropped_at{};           ///< when the last queue was dropped that took it; nullopt if that is not known
  bool has_namesake = false;  ///< a queue of this name takes other actions
};

/// Within the caller's transaction. Without the action of messages while nobody asks for any.
std::vector<UntakenAction> read_untaken_actions(pqxx::transaction_base& transaction);

}  // namespace mailroom
