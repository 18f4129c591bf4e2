// The step from a YAML file to its nodes, with a limit on its size.
#pragma once

#include <optional>
#include <string>
#include <yaml-cpp/yaml.h>

namespace mailroom {

// Reads YAML for the other files of this directory, the only users of yaml-cpp.

struct YamlText {
  std::string text;
  unsigned mode = 0;  ///< permission bits of the file
};

/// Returns nullopt if there is no such file. Throws Error(configuration) if it cannot be read, with `name` in
/// the message: `the configuration file mailroom.yaml`.
std::optional<YamlText> read_yaml_text(const std::string& path, const std::string& name);

/// Parses the text of a file. Returns null for a file without content. Throws Error(configuration), with line
/// and column, for a text that is not one YAML document.
YAML::Node parse_yaml(const std::string& path, const std::string& text);

}  // namespace mailroom
