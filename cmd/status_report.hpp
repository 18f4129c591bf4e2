#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "queue/queue_health.hpp"
#include "queue/queue_status.hpp"

namespace mailroom {

/// One look at a queue.
struct StatusReport {
  QueueStatus queue;
  long schema_version = 0;
  long newest_schema_version = 0;  ///< that this binary knows
  std::vector<QueueFinding> findings;
};

/// Past values, for the lines that --watch draws; oldest first, nothing where nobody has looked.
struct StatusTrend {
  std::vector<std::optional<double>> rate;  ///< tokens a second
  std::vector<std::optional<double>> lag;   ///< seconds
};

/// 8 when there is a failure, 0 otherwise.
ExitCode judge(const StatusReport& report);

/// Since when a queue cannot be looked at, and why.
struct StatusOutage {
  std::string queue;
  std::int64_t now = 0;  ///< this host's clock, in seconds since 1970
  Milliseconds lasts{};
  std::string reason;
};

struct StatusStyle {
  bool colour = false;
  std::size_t width = 80;
  std::size_t most_lines = 1000;         ///< tables that do not fit are left out, not what is wrong
  const StatusTrend* trend = nullptr;    ///< left out if there is none
  const StatusOutage* outage = nullptr;  ///< in the place of the verdict: all below is of the last look
};

/// A screen: the verdict, `label: value`, tables of what there is, findings.
std::string render_text(const StatusReport& report, const StatusStyle& style);
/// `TIME VERDICT key=value …`, one line.
std::string render_line(const StatusReport& report);
/// One object in one line.
std::string render_json(const StatusReport& report);
/// The same two of a look that could not be had: `TIME failure findings=unreachable for=40s`.
std::string render_line(const StatusOutage& outage);
std::string render_json(const StatusOutage& outage);

/// What was emitted a second in each tenth of a minute of the last five minutes, as the records have it.
std::vector<std::optional<double>> rate_trend(const RecentEmissions& emissions);

}  // namespace mailroom
