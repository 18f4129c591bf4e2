// The summary that simulate prints at its end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "simulation/simulation.hpp"

namespace mailroom::cmd {

/// The result of a run of simulate.
struct SimulateReport {
  std::optional<std::uint64_t> seed;
  std::optional<simulation::SimulationTally> played;
  std::optional<std::int64_t> removed;
  bool stopped = false;
  bool cut_short = false;  ///< a signal stopped the cleanup
};

/// Lines of `label: value`, aligned.
std::string render_text(const SimulateReport& report);
/// One object in one line.
std::string render_json(const SimulateReport& report);

}  // namespace mailroom::cmd
