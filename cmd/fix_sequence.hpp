#pragma once

#include <string>

#include "cmd/context.hpp"

namespace mailroom {

struct FixSequenceOptions {
  std::int64_t extend_seconds = 0;
  std::string reason;
  bool dry_run = false;
};

/// `mailroom rewind-cursor --fix-sequence`: shows what is to be done, asks, and does it.
ExitCode run_fix_sequence(const FixSequenceOptions& options, Context& context);

}  // namespace mailroom
