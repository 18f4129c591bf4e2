#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mailroom {

/// A command that works as typed, and what it is good for.
struct Example {
  std::string command;
  std::string purpose;  ///< empty where the command says enough
};

/// Reads `Command::examples`: below a title, a line an example, its purpose behind two spaces or more.
std::vector<Example> parse_examples(std::string_view examples);

}  // namespace mailroom
