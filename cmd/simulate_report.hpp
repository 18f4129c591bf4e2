#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "accounts/simulation.hpp"

namespace mailroom {

/// All that a run of simulate did.
struct SimulateReport {
  std::optional<std::uint64_t> seed;
  std::optional<SimulationSummary> played;
  std::optional<std::int64_t> removed;
  bool stopped = false;
  bool cut_short = false;  ///< the cleaning, too
};

/// Lines of `label: value`, aligned.
std::string render_text(const SimulateReport& report);
/// One object in one line.
std::string render_json(const SimulateReport& report);

}  // namespace mailroom
