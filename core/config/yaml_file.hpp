#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace mailroom {

/// One value of a configuration file; line and column are those of its key, from 1.
struct YamlValue {
  std::string text;                ///< a list joined by commas
  std::vector<std::string> items;  ///< of a list
  int line = 0;
  int column = 0;
};

/// A configuration file, flattened: `collect: { queue: a }` is `collect.queue` -> `a`.
struct YamlFile {
  std::string path;
  unsigned mode = 0;  ///< permission bits
  std::map<std::string, YamlValue> values;
};

/// Returns nullopt if there is no such file. Throws Error(configuration), with line and column, for a file
/// that cannot be read, is not YAML, or has an unknown or repeated key, a section in place of a value or the
/// reverse. Values are neither parsed nor shown.
std::optional<YamlFile> read_yaml_file(const std::string& path);

}  // namespace mailroom
