// The output of status --watch without a terminal: one line for each report.

#include <fmt/format.h>
#include <set>

#include "base/moment.hpp"
#include "base/text.hpp"
#include "cmd/status/status_report.hpp"

namespace mailroom {

std::string render_line(const StatusOutage& outage) {
  return fmt::format("{} failure findings=unreachable for={}\n", moment_text(outage.now),
                     age_text(outage.lasts));
}

std::string render_line(const StatusReport& report, const std::string& name) {
  const auto& queue = report.queue;
  const auto lag = queue.lag();
  auto line =
      fmt::format("{} {}{} pending={}{} lag={} rate={:.1f}/s collectors={} open={} gaps={} cursor={}",
                  moment_text(queue.now), severity_name(worst(report.findings)),
                  name.empty() ? "" : " queue=" + shown_text(name), queue.waiting.estimated ? "~" : "",
                  queue.waiting.total(), lag ? age_text(*lag) : "0s", queue.emissions.per_second(),
                  queue.collectors.size(), queue.open_batches.size(), queue.gap_ids, queue.cursor);
  std::set<std::string> codes;
  for (const auto& finding : report.findings) {
    if (codes.insert(finding.code).second) line += (codes.size() == 1 ? " findings=" : ",") + finding.code;
  }
  return line + "\n";
}

}  // namespace mailroom
