#pragma once

#include <string>

#include "cmd/terminal/context.hpp"

namespace mailroom {

struct FixSequenceOptions {
  std::int64_t extend_seconds = 0;
  std::string reason;
  bool dry_run = false;
};

/// `mailroom rewind-cursor --fix-sequence`: shows the plan, asks for confirmation, and carries it out.
ExitCode run_fix_sequence(const FixSequenceOptions& options, Context& context);

}  // namespace mailroom
