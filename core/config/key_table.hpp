// The one list of configuration keys, from which parsing, options, manual and error messages follow.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/key_entry.hpp"

namespace mailroom {

/// Every key, in the order of the documentation.
std::span<const KeyEntry> key_table();

/// The entry of `key`; null for an unknown key.
const KeyEntry* find_key(std::string_view key);

/// A value of `entry`, whose text is that of its items joined by commas. Secret too if a list has a key.
SettingValue make_value(const KeyEntry& entry, std::string text, std::vector<std::string> items,
                        Origin origin);

}  // namespace mailroom
