// The parts of a status screen: labels, headline, findings, rates.
#pragma once

#include <string>
#include <vector>

#include "cmd/status/status_report.hpp"

namespace mailroom {

// What the screens of one queue and of several have in common.

/// `label:       value`, wrapped.
std::string labelled(const std::string& label, const std::string& value, std::size_t width);
std::string painted(const std::string& text, Severity severity, bool colour);
std::int64_t count_of(const std::vector<QueueFinding>& findings, Severity severity);
/// `unhealthy, 2 failures, 1 warning`
std::string verdict_text(const std::vector<QueueFinding>& findings);
/// The verdict, or the outage.
std::string headline(const std::vector<QueueFinding>& findings, const StatusStyle& style);
std::string render_findings(const std::vector<QueueFinding>& findings, const StatusStyle& style);
/// With one decimal.
std::string rate_text(double rate);
/// `all`, or the actions: `activation`, `recovery`.
std::string takes_text(const QueueRules& rules);
/// `14/s, burst 10: 3 left`, or when the next token may go.
std::string budget_text(const BudgetStatus& budget, const std::string& queue);
std::string pause_text(const PauseStatus& pause);

}  // namespace mailroom
