// The examples of a command's help, taken apart so that man pages show them too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mailroom {

/// A command line that works as typed, and its purpose.
struct Example {
  std::string command;
  std::string purpose;  ///< may be empty
};

/// The contents of `Command::examples`: a title, then one example per line, its purpose after at least two
/// spaces; then, after an optional empty line, the notes.
struct ExampleText {
  std::vector<Example> examples;
  std::string notes;
};

ExampleText parse_examples(std::string_view text);

}  // namespace mailroom
