#include "cmd/confirm.hpp"

#include <iostream>
#include <unistd.h>

namespace mailroom {

void confirm(Context& context, const std::string& question) {
  if (context.global().yes) return;
  if (isatty(STDIN_FILENO) != 1 || !context.err().is_terminal()) {
    throw Error(ExitCode::declined, "there is no terminal to ask on: " + question, "--yes answers with yes");
  }
  context.err().write(question + " [y/N] ");
  std::string answer;
  if (!std::getline(std::cin, answer)) context.err().write("\n");
  if (answer != "y" && answer != "yes") throw Error(ExitCode::declined, "declined: nothing has been done");
}

}  // namespace mailroom
