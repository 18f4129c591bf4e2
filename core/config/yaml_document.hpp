// The step from a YAML file to its nodes, with a limit on its size, and reading one whose keys are not the
// configuration's.
#pragma once

#include <optional>
#include <string>
#include <vector>
#include <yaml-cpp/yaml.h>

#include "config/settings.hpp"

namespace mailroom::config {

/// A configuration file, flattened: `collect: { queue: a }` is `collect.queue` -> `a`.
struct YamlFile {
  std::string path;
  unsigned mode = 0;  ///< permission bits
  std::vector<SettingValue> values;
  std::vector<Profile> profiles{};                 ///< without the section `send`
  std::vector<SubmissionRole> submission_roles{};  ///< without the section `submission`
};

/// Returns nullopt if there is no such file. Throws Error(configuration), with line and column, for a file
/// that cannot be read, is not YAML, or has an unknown or repeated key, a section in place of a value or the
/// reverse. Values are neither parsed nor shown.
std::optional<YamlFile> read_yaml_file(const std::string& path);

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

}  // namespace mailroom::config
