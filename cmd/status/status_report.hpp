// The report on one queue, the forms in which it is shown, and one verdict on all.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "health/queue_health.hpp"
#include "messages/role_counts.hpp"
#include "status/queue_status.hpp"

namespace mailroom::cmd {

/// One report on a queue.
struct StatusReport {
  status::QueueStatus queue;
  long schema_version = 0;
  long newest_schema_version = 0;  ///< of the schema versions that this binary knows
  std::vector<health::QueueFinding> findings;
  messages::RecentRoles asked{};  ///< of the database
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
std::vector<std::optional<double>> rate_trend(const status::RecentEmissions& emissions);

// What the screens of one queue and of several have in common.

/// `label:       value`, wrapped.
std::string labelled(const std::string& label, const std::string& value, std::size_t width);
std::string painted(const std::string& text, health::Severity severity, bool colour);
std::int64_t count_of(const std::vector<health::QueueFinding>& findings, health::Severity severity);
/// `unhealthy, 2 failures, 1 warning`
std::string verdict_text(const std::vector<health::QueueFinding>& findings);
/// The verdict, or the outage.
std::string headline(const std::vector<health::QueueFinding>& findings, const StatusStyle& style);
std::string render_findings(const std::vector<health::QueueFinding>& findings, const StatusStyle& style);
/// With one decimal.
std::string rate_text(double rate);
/// `all`, or the actions: `activation`, `recovery`.
std::string takes_text(const queue::QueueProperties& properties);
/// `14/s, burst 10: 3 left`, or when the next token may go.
std::string budget_text(const queue::Budget& budget, const std::string& queue);
std::string pause_text(const queue::QueuePause& pause);
/// `1,204 messages by shop, 30 messages by lists in the last hour`
std::string asked_text(const messages::RecentRoles& asked);

/// A report on each of the queues that are shown, by priority and name; at least one. A single queue is shown
/// in detail, several in a table.
struct StatusOverview {
  std::vector<StatusReport> queues;

  bool is_single() const { return queues.size() == 1; }
};

/// The findings of all queues, failures first. With several queues each names the queues that have it, unless
/// all of them do.
std::vector<health::QueueFinding> findings_of(const StatusOverview& overview);

/// 8 when a queue has a failure, 0 otherwise.
ExitCode judge(const StatusOverview& overview);

std::string render_text(const StatusOverview& overview, const StatusStyle& style);
/// A line for each queue.
std::string render_line(const StatusOverview& overview);
/// The object of a single queue; of several, an object with the list of theirs.
std::string render_json(const StatusOverview& overview);

}  // namespace mailroom::cmd
