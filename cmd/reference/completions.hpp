#pragma once

#include <string>

#include "cmd/reference/reference.hpp"

namespace mailroom {

// Scripts that complete commands, options, and values that are files, directories or one of several choices.
// For free text they offer nothing.

std::string render_bash_completion(const CommandReference& program);
std::string render_zsh_completion(const CommandReference& program);
std::string render_fish_completion(const CommandReference& program);

}  // namespace mailroom
