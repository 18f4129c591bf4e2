#include "cmd/reference/words.hpp"

#include <algorithm>

namespace mailroom {

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const auto& word : words)
    text.append(text.empty() ? "" : between).append(word);
  return text;
}

std::string with_backslashes(std::string_view text, std::string_view special) {
  std::string result;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

std::string with_dashes(std::string path) {
  std::ranges::replace(path, ' ', '-');
  return path;
}

std::vector<std::string> names_of(const std::vector<const OptionReference*>& options) {
  std::vector<std::string> names;
  for (const auto* option : options)
    names.insert(names.end(), option->names.begin(), option->names.end());
  return names;
}

std::vector<std::string> names_of(const std::vector<CommandReference>& commands) {
  std::vector<std::string> names;
  for (const auto& command : commands)
    names.push_back(command.name);
  return names;
}

bool takes_next_word(const OptionReference& option) {
  return option.value.kind != ValueReference::Kind::none && !option.value.optional;
}

std::vector<const OptionReference*> pointers_to(const std::vector<OptionReference>& options) {
  std::vector<const OptionReference*> all;
  for (const auto& option : options)
    all.push_back(&option);
  return all;
}

}  // namespace mailroom
