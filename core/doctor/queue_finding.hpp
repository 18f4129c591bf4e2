// How a finding of status becomes one of doctor: both have the same rules.
#pragma once

#include "base/text.hpp"
#include "doctor/finding.hpp"
#include "status/queue_health.hpp"

namespace mailroom {

inline Finding finding_of(const QueueFinding& found) {
  std::vector<std::string> commands;
  if (!found.fix.empty()) {
    for (const auto command : split(found.fix, '\n'))
      commands.emplace_back(command);
  }
  return found.severity == Severity::failure ? failure(found.text, std::move(commands), found.hint)
                                             : warning(found.text, std::move(commands), found.hint);
}

}  // namespace mailroom
