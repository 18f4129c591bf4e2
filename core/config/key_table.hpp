#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config/parse_value.hpp"
#include "config/settings.hpp"

namespace mailroom {

/// One key of the configuration: all that anybody needs to know of it.
struct KeyEntry {
  std::string_view key;           ///< `collect.batch_limit`: a section and a name
  std::string_view environment;   ///< the variable, or empty where there is none
  std::string_view default_text;  ///< empty where there is none
  std::string_view meaning;       ///< one line
  bool is_secret;                 ///< never shown as it is; of database.url the password alone is
  bool is_list;                   ///< a list in the file, joined by commas elsewhere
  /// Stores the value, or throws Error with ExitCode::configuration. Called when there is a value.
  void (*store)(const RawValue& value, Settings& settings);
  std::span<const std::string_view> choices = {};  ///< all that the value can be; empty where that is open
};

/// Every key, in the order of the documentation.
std::span<const KeyEntry> key_table();

/// Null for an unknown key.
const KeyEntry* find_key(std::string_view key);

/// True for what stands before the point of some key.
bool is_section(std::string_view name);

/// `did you mean collect.batch_limit?`, or where to read of all keys when none is near. `key` may also be a
/// section, or a key's name without its section.
std::string hint_for_unknown(const std::string& key);

}  // namespace mailroom
