// Reads quotes and backslashes by the rules of a POSIX shell.

#include "carriers/exec/command_words.hpp"

namespace mailroom {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n';
}

/// Moves the word at the front of `rest` to `word`, without its quotes. False if it does not end.
bool take_word(std::string_view& rest, std::string& word) {
  char quote = '\0';
  for (; !rest.empty() && (quote != '\0' || !is_blank(rest.front())); rest.remove_prefix(1)) {
    const char c = rest.front();
    if (c == quote) {
      quote = '\0';
    } else if (quote == '\0' && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == '\\' && quote != '\'') {
      rest.remove_prefix(1);
      if (rest.empty()) return false;
      // Within double quotes a backslash quotes only what is special there.
      if (quote == '"' && rest.front() != '"' && rest.front() != '\\') word += c;
      word += rest.front();
    } else {
      word += c;
    }
  }
  return quote == '\0';
}

}  // namespace

std::optional<std::vector<std::string>> command_words(std::string_view command) {
  std::vector<std::string> words;
  for (;;) {
    while (!command.empty() && is_blank(command.front()))
      command.remove_prefix(1);
    if (command.empty()) return words;
    if (!take_word(command, words.emplace_back())) return std::nullopt;
  }
}

}  // namespace mailroom
