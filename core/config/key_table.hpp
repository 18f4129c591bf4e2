#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config/parse_value.hpp"
#include "config/settings.hpp"

namespace mailroom {

/// One key of the configuration.
struct KeyEntry {
  std::string_view key;           ///< `collect.batch_limit`: a section and a name
  std::string_view environment;   ///< the environment variable; empty for none
  std::string_view default_text;  ///< empty for none
  std::string_view meaning;       ///< one line
  bool is_secret;                 ///< never shown as it is; of database.url only the password is hidden
  bool is_list;                   ///< a list in the file, joined by commas elsewhere
  /// Stores the value; throws Error(configuration) if it is invalid. Called only if there is a value.
  void (*store)(const RawValue& value, Settings& settings);
  std::span<const std::string_view> choices = {};  ///< the allowed values; empty if there is no fixed set
};

/// Every key, in the order of the documentation.
std::span<const KeyEntry> key_table();

/// The entry of `key`; null for an unknown key.
const KeyEntry* find_key(std::string_view key);

/// True if some key begins with `name` and a dot.
bool is_section(std::string_view name);

/// `did you mean collect.batch_limit?`, or where all keys are listed if none is similar. `key` may also be a
/// section or a key's name without its section.
std::string hint_for_unknown(const std::string& key);

}  // namespace mailroom
