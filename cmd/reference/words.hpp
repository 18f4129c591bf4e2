#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cmd/reference/reference.hpp"

namespace mailroom {

std::string joined(const std::vector<std::string>& words, std::string_view between = " ");

/// `text` with a backslash before each character of `special`.
std::string with_backslashes(std::string_view text, std::string_view special);

/// `path` as one word: `mailroom-migrate-down`.
std::string with_dashes(std::string path);

/// All names of `options`.
std::vector<std::string> names_of(const std::vector<const OptionReference*>& options);
std::vector<std::string> names_of(const std::vector<CommandReference>& commands);

/// True if a value must follow. With an optional value, the next word need not be the value.
bool takes_next_word(const OptionReference& option);

std::vector<const OptionReference*> pointers_to(const std::vector<OptionReference>& options);

}  // namespace mailroom
