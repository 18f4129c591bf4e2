// The one list of configuration keys, from which parsing, manual and error messages follow.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "config/settings.hpp"

namespace mailroom {

/// One key of the configuration.
struct KeyEntry {
  std::string_view key;           ///< `collect.batch_limit`: a section and a name
  std::string_view environment;   ///< the environment variable; empty for none
  std::string_view default_text;  ///< empty for none
  std::string_view meaning;       ///< one line
  /// Stores the value; throws Error(configuration) if it is invalid. Called only if there is a value.
  std::function<void(const SettingValue& value, Settings& settings)> store;
  std::vector<std::string> choices = {};  ///< the allowed values; empty if there is no fixed set
  bool is_secret = false;  ///< never shown as it is; of database.url only the password is hidden
  bool is_list = false;    ///< a list in the file, joined by commas elsewhere
};

/// Every key, in the order of the documentation.
std::span<const KeyEntry> key_table();

/// The entry of `key`; null for an unknown key.
const KeyEntry* find_key(std::string_view key);

/// A value of `entry`, whose text is that of its items joined by commas. Secret too if a list has a key.
SettingValue make_value(const KeyEntry& entry, std::string text, std::vector<std::string> items,
                        Origin origin);

/// True if some key begins with `name` and a dot.
bool is_section(std::string_view name);

/// `did you mean collect.batch_limit?`, or where all keys are listed if none is similar. `key` may also be a
/// section or a key's name without its section.
std::string hint_for_unknown(const std::string& key);

}  // namespace mailroom
