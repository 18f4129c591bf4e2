#include "cmd/example.hpp"

#include <algorithm>

namespace mailroom {
namespace {

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

}  // namespace

std::vector<Example> parse_examples(std::string_view examples) {
  std::vector<Example> all;
  for (auto end = examples.find('\n'); end != std::string_view::npos; end = examples.find('\n')) {
    const auto line = examples.substr(0, end);
    examples.remove_prefix(end + 1);
    if (!line.starts_with("  ")) continue;
    const auto text = trimmed(line);
    const auto gap = std::min(text.find("  "), text.size());
    all.push_back({std::string(text.substr(0, gap)), std::string(trimmed(text.substr(gap)))});
  }
  return all;
}

}  // namespace mailroom
