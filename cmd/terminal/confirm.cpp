#include "cmd/terminal/confirm.hpp"

#include <algorithm>
#include <cctype>
#include <iostream>
#include <unistd.h>

#include "base/printable.hpp"

namespace mailroom {

bool is_yes(std::string_view answer) {
  constexpr auto blanks = " \t\r";
  answer.remove_prefix(std::min(answer.find_first_not_of(blanks), answer.size()));
  std::string word(answer.substr(0, answer.find_last_not_of(blanks) + 1));
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
  return word == "y" || word == "yes";
}

void confirm(Context& context, const std::string& question) {
  if (context.global().yes) return;
  if (isatty(STDIN_FILENO) != 1 || !context.err().is_terminal()) {
    throw Error(ExitCode::declined, "there is no terminal to ask on: " + question,
                "give --yes to answer yes");
  }
  context.err().write(printable(question) + " [y/N] ");
  std::string answer;
  if (!std::getline(std::cin, answer)) context.err().write("\n");
  if (!is_yes(answer)) throw Error(ExitCode::declined, "declined: nothing was changed");
}

}  // namespace mailroom
