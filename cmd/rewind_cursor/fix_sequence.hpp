// The part of rewind-cursor that sets sequences ahead in place of moving a cursor.
#pragma once

#include <string>

#include "cmd/terminal/context.hpp"

namespace mailroom {

/// `mailroom rewind-cursor --fix-sequence`: shows the plan, asks for confirmation, and carries it out.
ExitCode run_fix_sequence(std::chrono::seconds extension, const std::string& reason, bool dry_run,
                          Context& context);

}  // namespace mailroom
