#pragma once

#include "cmd/reference/reference.hpp"
#include "cmd/reference/roff.hpp"

namespace mailroom {

// The sections that the pages share, and what stands in them.

void add_name(ManPage& page, const std::string& name, const std::string& summary);
/// A line for each way to call `command` or one of its own.
void add_synopsis(ManPage& page, const CommandReference& command);
void add_examples(ManPage& page, const std::vector<Example>& examples);
/// Nothing when there are none.
void add_notes(ManPage& page, const std::string& notes);
/// Operands and options, as items.
void add_arguments(ManPage& page, const CommandReference& command);
/// EXIT STATUS, with what to do or, shorter, without.
void add_exit_statuses(ManPage& page, bool with_remedies);

/// `mailroom.yaml(5)`
std::string page_name(const std::string& name, int section);

}  // namespace mailroom
