// The file of mailroom queue apply, with the place of each value for error messages.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/settings.hpp"

namespace mailroom {

/// A queue or a budget of a file, with the values that are given, for queue/queue_setting.hpp.
struct QueueFileEntry {
  std::string name;
  std::string place;  ///< `queues.yaml:12:3`
  std::vector<SettingValue> values{};
  std::optional<SettingValue> from{};  ///< where a new queue begins
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

}  // namespace mailroom
