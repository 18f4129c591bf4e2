// Counts the tokens that wait, for what a consumer tells systemd and its log.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "db/database_target.hpp"

namespace mailroom {

/// Counts the tokens that wait; nullopt if that is not known. Waits a few seconds at most.
using CountBacklog = std::function<std::optional<std::int64_t>()>;

/// Counts as `mailroom status` does, in all of `queues`, on a session of its own that ends with the count.
CountBacklog backlog_counter(const DatabaseTarget& target, const std::vector<std::string>& queues);

}  // namespace mailroom
