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

/// What `Command::examples` holds: below a title a line an example, its purpose behind two spaces or more;
/// and behind an empty line, if there is one, notes, which are laid out as they are.
struct ExampleText {
  std::vector<Example> examples;
  std::string notes;
};

ExampleText parse_examples(std::string_view text);

}  // namespace mailroom
