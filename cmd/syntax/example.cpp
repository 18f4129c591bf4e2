#include "cmd/syntax/example.hpp"

#include <algorithm>

namespace mailroom {
namespace {

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

std::vector<Example> parse_lines(std::string_view lines) {
  std::vector<Example> all;
  while (!lines.empty()) {
    const auto end = std::min(lines.find('\n'), lines.size());
    const auto line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
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
