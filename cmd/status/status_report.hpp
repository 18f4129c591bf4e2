// The report on one queue, and the forms in which it is shown.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "status/queue_health.hpp"
#include "status/queue_status.hpp"

namespace mailroom {

/// One report on a queue.
struct StatusReport {
  QueueStatus queue;
  long schema_version = 0;
  long newest_schema_version = 0;  ///< of the schema versions that this binary knows
  std::vector<QueueFinding> findings;
};

/// Past values for the trends of --watch, oldest first; nullopt where no report was read.
struct StatusTrend {
  std::vector<std::optional<double>> rate;  ///< tokens a second
  std::vector<std::optional<double>> lag;   ///< seconds
};

/// How long the database has not answered, and why.
struct StatusOutage {
  std::string queue;  ///< empty for several
  Moment now{};       ///< this host's clock
  Milliseconds lasts{};
  std::string reason;
};

struct StatusStyle {
  bool colour = false;
  std::size_t width = 80;
  std::size_t max_lines = 1000;          ///< tables that do not fit are omitted; findings are not
  const StatusTrend* trend = nullptr;    ///< omitted if null
  const StatusOutage* outage = nullptr;  ///< if set, replaces the verdict; all below is of the last report
};

/// A screen: the verdict, `label: value` lines, tables, findings.
std::string render_text(const StatusReport& report, const StatusStyle& style);
/// `TIME VERDICT key=value …`, one line; with `queue=NAME` if that is not empty.
std::string render_line(const StatusReport& report, const std::string& name = {});
/// The same for an outage: `TIME failure findings=unreachable for=40s`.
std::string render_line(const StatusOutage& outage);
std::string render_json(const StatusOutage& outage);

/// Tokens emitted per second in each 10 seconds of the last five minutes, oldest first; nullopt where no
/// records reach back.
std::vector<std::optional<double>> rate_trend(const RecentEmissions& emissions);

}  // namespace mailroom
