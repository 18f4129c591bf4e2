// Is there a sink that batches can be handed over to? Its carrier knows what to look at.

#include "doctor/sink_finding.hpp"
#include "doctor/subject.hpp"

namespace mailroom {
Finding finding_of(const SinkFinding& found) {
  switch (found.level) {
    case SinkFinding::Level::fine:
      break;
    case SinkFinding::Level::warning:
      return warning(found.reason, found.fix, found.hint);
    case SinkFinding::Level::failure:
      return failure(found.reason, found.fix, found.hint);
  }
  auto finding = fine(found.reason);
  finding.hint = found.hint;
  return finding;
}

Findings check_sink(Subject& subject) {
  if (!subject.settings_complete) return {not_checked("the configuration cannot be read")};
  const auto& settings = *subject.settings;
  if (!hands_over(settings)) return {fine("not configured")};
  Findings findings;
  for (const auto& found : configured_carrier(settings).check(settings))
    findings.push_back(finding_of(found));
  return findings;
}

}  // namespace mailroom
