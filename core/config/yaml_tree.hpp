// Reads a YAML file whose keys are not those of the configuration, such as the one of mailroom queue apply.
#pragma once

#include <string>
#include <vector>

namespace mailroom {

/// A key of a YAML file with its value.
struct YamlEntry {
  enum class Kind { nothing, text, list, section };

  std::string key;
  std::string place;  ///< of the key: `queues.yaml:12:3`
  Kind kind = Kind::nothing;
  std::string text{};                ///< of Kind::text
  std::vector<std::string> items{};  ///< of Kind::list
  std::vector<YamlEntry> entries{};  ///< of Kind::section
};

/// Returns the sections of a file. Throws Error(configuration), with line and column, for a file that cannot
/// be read or is not YAML, that has a repeated or unprintable key, a list of other things than single values,
/// or sections more than three levels deep.
std::vector<YamlEntry> read_yaml_tree(const std::string& path);

}  // namespace mailroom
