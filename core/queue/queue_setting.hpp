// What options and the file of mailroom queue apply say of a queue, applied to its definition, with the place
// of each value.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/settings.hpp"
#include "queue/queue_definition.hpp"

namespace mailroom::queue {

/// A queue or a budget of a file, with the values that are given, for queue/queue_setting.hpp.
struct QueueFileEntry {
  std::string name;
  std::string place;  ///< `queues.yaml:12:3`
  std::vector<config::SettingValue> values{};
  std::optional<config::SettingValue> from{};  ///< where a new queue begins
};

/// A file that defines queues, and the budgets that they share.
struct QueueFile {
  std::vector<QueueFileEntry> budgets;
  std::vector<QueueFileEntry> queues;
};

/// Reads a file with the sections `budgets` and `queues`. Throws Error(configuration), with line and column,
/// for a file that cannot be read or is not YAML, an unknown key (with the nearest known key), and a value of
/// another form.
QueueFile read_queue_file(const std::string& path);

// Properties of queues and budgets as operators write them: SettingValues with the keys of queue_keys() and
// budget_keys(), from options or a file. All functions throw Error as refuse() does for an invalid value.

/// actions, priority, rate, burst, budget, batch_limit, batch_timeout
const std::vector<std::string>& queue_keys();
/// rate, burst
const std::vector<std::string>& budget_keys();

/// Returns `properties` with the changes of `values`; of two values with one key the last counts. Refuses an
/// action that is not `known`; with null, before the command connects, takes any and leaves the actions out.
QueueProperties changed(QueueProperties properties, const std::vector<config::SettingValue>& values,
                        const Actions* known);

/// Returns the rate with the changes of `values`; nullopt if there is none, and `values` has none.
std::optional<PacedRate> changed(std::optional<PacedRate> paced,
                                 const std::vector<config::SettingValue>& values);

/// The name of a queue, or of a budget: one that collect.queue can hold.
std::string parse_queue_name(const config::SettingValue& value);

}  // namespace mailroom::queue
