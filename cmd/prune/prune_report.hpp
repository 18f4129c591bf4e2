#pragma once

#include <string>

#include "base/clock.hpp"
#include "prune/pruner.hpp"

namespace mailroom {

/// The result of a run of `prune`.
struct PruneReport {
  PruneSummary summary{};
  bool dry_run = false;
  std::int64_t before = 0;  ///< seconds since 1970
  Milliseconds older_than{};
};

std::string render_text(const PruneReport& report);

/// One JSON object in one line.
std::string render_json(const PruneReport& report);

}  // namespace mailroom
