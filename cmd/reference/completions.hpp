#pragma once

#include <string>

#include "cmd/reference/reference.hpp"

namespace mailroom {

// Scripts that complete a command line of the program: commands, options, and the values of options that are
// files or have choices. Where any text may stand nothing is offered.

std::string render_bash_completion(const CommandReference& program);
std::string render_zsh_completion(const CommandReference& program);
std::string render_fish_completion(const CommandReference& program);

}  // namespace mailroom
