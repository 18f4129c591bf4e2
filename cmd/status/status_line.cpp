#include <algorithm>
#include <fmt/format.h>

#include "base/moment.hpp"
#include "cmd/status/status_report.hpp"

namespace mailroom {

std::string render_line(const StatusOutage& outage) {
  return fmt::format("{} failure findings=unreachable for={}\n", moment_text(outage.now),
                     age_text(outage.lasts));
}

std::string render_line(const StatusReport& report) {
  const auto& queue = report.queue;
  const auto lag = queue.lag();
  auto line = fmt::format("{} {} pending={}{} lag={} rate={:.1f}/s collectors={} open={} gaps={} cursor={}",
                          moment_text(queue.now / 1000), severity_name(worst(report.findings)),
                          queue.waiting.estimated ? "~" : "", queue.waiting.total(),
                          lag ? age_text(*lag) : "0s", queue.emissions.per_second(), queue.collectors.size(),
                          queue.open_batches.size(), queue.gap_ids, queue.cursor);
  std::vector<std::string> codes;
  for (const auto& finding : report.findings) {
    if (std::find(codes.begin(), codes.end(), finding.code) == codes.end()) codes.push_back(finding.code);
  }
  for (std::size_t i = 0; i < codes.size(); ++i)
    line += (i == 0 ? " findings=" : ",") + codes[i];
  return line + "\n";
}

}  // namespace mailroom
