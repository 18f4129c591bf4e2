// What an error says of a key that is not in the table.
#pragma once

#include <string>
#include <string_view>

namespace mailroom {

/// True if some key begins with `name` and a dot.
bool is_section(std::string_view name);

/// `did you mean collect.batch_limit?`, or where all keys are listed if none is similar. `key` may also be a
/// section or a key's name without its section.
std::string hint_for_unknown(const std::string& key);

}  // namespace mailroom
