// Splits the command of sink.exec without starting a shell.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mailroom {

/// The words of a command, separated by blanks. Quotes and backslashes work as in a shell, and nothing else
/// does: no variables, no patterns, no redirections. Nullopt if a quote is not closed, or nothing follows a
/// backslash.
std::optional<std::vector<std::string>> command_words(std::string_view command);

}  // namespace mailroom
