#pragma once

#include "cmd/reference/reference.hpp"
#include "cmd/reference/roff.hpp"

namespace mailroom {

// The sections that the pages share.

void add_name(ManPage& page, const std::string& name, const std::string& summary);
/// SYNOPSIS, with a line for `command` and for each of its subcommands.
void add_synopsis(ManPage& page, const CommandReference& command);
void add_examples(ManPage& page, const std::vector<Example>& examples);
/// NOTES; nothing if `notes` is empty.
void add_notes(ManPage& page, const std::string& notes);
/// Operands and options, as items.
void add_arguments(ManPage& page, const CommandReference& command);
/// EXIT STATUS, with or without what to do about each status.
void add_exit_statuses(ManPage& page, bool with_remedies);

/// `mailroom.yaml(5)`
std::string page_name(const std::string& name, int section);

}  // namespace mailroom
