// Applies what options and files say of a queue to its definition.
#pragma once

#include "config/settings.hpp"
#include "queue/queue_definition.hpp"

namespace mailroom {

// Properties of queues and budgets as operators write them: SettingValues with the keys of queue_keys() and
// budget_keys(), from options or a file. All functions throw Error as refuse() does for an invalid value.

/// actions, priority, rate, burst, budget, batch_limit, batch_timeout
const std::vector<std::string>& queue_keys();
/// rate, burst
const std::vector<std::string>& budget_keys();

/// Returns `properties` with the changes of `values`; of two values with one key the last counts.
QueueProperties changed(QueueProperties properties, const std::vector<SettingValue>& values);

/// Returns the rate with the changes of `values`; nullopt if there is none, and `values` has none.
std::optional<PacedRate> changed(std::optional<PacedRate> paced, const std::vector<SettingValue>& values);

/// The name of a queue, or of a budget: one that collect.queue can hold.
std::string parse_queue_name(const SettingValue& value);

}  // namespace mailroom
