// What a simulation did, as aligned lines and as JSON.

#include "cmd/simulate/simulate_report.hpp"

#include <cmath>
#include <fmt/format.h>
#include <vector>

#include "base/json.hpp"
#include "base/wording.hpp"

namespace mailroom::cmd {
namespace {

std::string summary_row(const std::string& label, const std::string& value) {
  return fmt::format("{:<13} {:>12}\n", label + ":", value);
}

/// The counts, by their names in both formats.
std::vector<std::pair<std::string, std::int64_t>> counts_of(const simulation::SimulationTally& tally) {
  return {{"accounts", tally.accounts},
          {"activated", tally.used.activated},
          {"recovered", tally.used.recovered},
          {"expired", tally.used.expired},
          {"messages", tally.messages}};
}

}  // namespace

std::string render_text(const SimulateReport& report) {
  std::string text;
  if (report.seed) text += summary_row("seed", std::to_string(*report.seed));
  if (report.played) {
    for (const auto& [name, count] : counts_of(*report.played)) {
      if (count > 0) text += summary_row(name, with_thousands(count));
    }
    text += summary_row("seconds", fmt::format("{:.2f}", report.played->seconds));
  }
  if (report.removed) text += summary_row("removed", with_thousands(*report.removed));
  if (report.stopped) text += "stopped by a signal before the end\n";
  return text;
}

std::string render_json(const SimulateReport& report) {
  nlohmann::ordered_json object;
  if (report.seed) object["seed"] = *report.seed;
  if (report.played) {
    for (const auto& [name, count] : counts_of(*report.played))
      object[name] = count;
    object["seconds"] = std::round(report.played->seconds * 1000) / 1000;
  }
  if (report.removed) object["removed"] = *report.removed;
  object["stopped"] = report.stopped;
  return json_text(object) + "\n";
}

}  // namespace mailroom::cmd
