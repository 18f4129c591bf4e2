// Splits each line at two blanks, and the notes off at the first empty line.

#include "cmd/syntax/example.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace mailroom {
namespace {

std::vector<Example> parse_lines(std::string_view lines) {
  std::vector<Example> all;
  for (const auto line : split(lines, '\n')) {
    if (!line.starts_with("  ")) continue;
    const auto text = trimmed(line);
    const auto blanks = std::min(text.find("  "), text.size());
    all.push_back({std::string(text.substr(0, blanks)), std::string(trimmed(text.substr(blanks)))});
  }
  return all;
}

}  // namespace

ExampleText parse_examples(std::string_view text) {
  const auto end = std::min(text.find("\n\n"), text.size());
  return {parse_lines(text.substr(0, end)), std::string(text.substr(std::min(end + 2, text.size())))};
}

}  // namespace mailroom
