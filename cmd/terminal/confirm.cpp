// Reads the answer from stdin, and declines where there is no terminal to ask on.

#include "cmd/terminal/confirm.hpp"

#include <iostream>
#include <unistd.h>

#include "base/text.hpp"

namespace mailroom {

bool is_yes(std::string_view answer) {
  const auto word = lower_case(trimmed(answer));
  return (word == "y" || word == "yes") && answer.find('\n') == std::string_view::npos;
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
