// The man pages and completions that the build makes from the command line.
#pragma once

#include <string>

#include "cmd/reference/reference.hpp"

namespace mailroom::cmd {

/// mailroom(1).
std::string render_program_page(const CommandReference& program);

/// mailroom-COMMAND(1), for a command of the program.
std::string render_command_page(const CommandReference& command);

/// mailroom.yaml(5).
std::string render_configuration_page();

/// The configuration file that mailroom.yaml(5) shows.
extern const char* const example_configuration;

// Scripts that complete commands, options, and values that are files, directories or one of several choices.
// For free text they offer nothing.

std::string render_bash_completion(const CommandReference& program);
std::string render_zsh_completion(const CommandReference& program);
std::string render_fish_completion(const CommandReference& program);

}  // namespace mailroom::cmd
