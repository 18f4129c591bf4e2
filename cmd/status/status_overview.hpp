// One verdict and one output for all the queues that are shown.
#pragma once

#include <string>
#include <vector>

#include "cmd/status/status_report.hpp"

namespace mailroom {

/// A report on each of the queues that are shown, by priority and name; at least one. A single queue is shown
/// in detail, several in a table.
struct StatusOverview {
  std::vector<StatusReport> queues;

  bool is_single() const { return queues.size() == 1; }
};

/// The findings of all queues, failures first. With several queues each names the queues that have it, unless
/// all of them do.
std::vector<QueueFinding> findings_of(const StatusOverview& overview);

/// 8 when a queue has a failure, 0 otherwise.
ExitCode judge(const StatusOverview& overview);

std::string render_text(const StatusOverview& overview, const StatusStyle& style);
/// A line for each queue.
std::string render_line(const StatusOverview& overview);
/// The object of a single queue; of several, an object with the list of theirs.
std::string render_json(const StatusOverview& overview);

}  // namespace mailroom
