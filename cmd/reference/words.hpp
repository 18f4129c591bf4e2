#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cmd/reference/reference.hpp"

namespace mailroom {

std::string joined(const std::vector<std::string>& words, std::string_view between = " ");

/// `text` behind a backslash wherever one of `special` stands.
std::string with_backslashes(std::string_view text, std::string_view special);

/// All the names of `options`.
std::vector<std::string> names_of(const std::vector<const OptionReference*>& options);
std::vector<std::string> names_of(const std::vector<CommandReference>& commands);

/// True when a value has to follow. One that may be left out is as good as none to whoever reads on.
bool takes_next_word(const OptionReference& option);

std::vector<const OptionReference*> pointers_to(const std::vector<OptionReference>& options);

}  // namespace mailroom
