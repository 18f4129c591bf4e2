#pragma once

#include <string>

#include "base/clock.hpp"
#include "queue/pruner.hpp"

namespace mailroom {

/// What a run of `prune` has to say at its end.
struct PruneReport {
  PruneSummary summary{};
  bool dry_run = false;
  std::int64_t before = 0;  ///< seconds since 1970
  Milliseconds older_than{};
};

std::string render_text(const PruneReport& report);

/// One object.
std::string render_json(const PruneReport& report);

}  // namespace mailroom
