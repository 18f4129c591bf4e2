// Reads mailroom.yaml: every key that it sets, with its place for messages.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/settings.hpp"

namespace mailroom {

/// A configuration file, flattened: `collect: { queue: a }` is `collect.queue` -> `a`.
struct YamlFile {
  std::string path;
  unsigned mode = 0;  ///< permission bits
  std::vector<SettingValue> values;
};

/// Returns nullopt if there is no such file. Throws Error(configuration), with line and column, for a file
/// that cannot be read, is not YAML, or has an unknown or repeated key, a section in place of a value or the
/// reverse. Values are neither parsed nor shown.
std::optional<YamlFile> read_yaml_file(const std::string& path);

}  // namespace mailroom
