// Lays out at most six findings, and wraps no fix, so that it can be copied.

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/printable.hpp"
#include "base/terminal_text.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "cmd/status/status_report.hpp"
#include "queue/action.hpp"

namespace mailroom::cmd {
namespace {

constexpr std::size_t max_findings = 6;

}  // namespace

std::string labelled(const std::string& label, const std::string& value, std::size_t width) {
  constexpr std::size_t indent = 13;
  return fmt::format("{:<12} {}\n", label + ":", wrapped(value, width, indent, indent));
}

std::string painted(const std::string& text, health::Severity severity, bool colour) {
  if (!colour) return text;
  const char* paint = severity == health::Severity::failure   ? "\x1b[1;31m"
                      : severity == health::Severity::warning ? "\x1b[1;33m"
                                                              : "\x1b[1;32m";
  return paint + text + "\x1b[0m";
}

std::int64_t count_of(const std::vector<health::QueueFinding>& findings, health::Severity severity) {
  return std::count_if(findings.begin(), findings.end(),
                       [&](const health::QueueFinding& finding) { return finding.severity == severity; });
}

std::string verdict_text(const std::vector<health::QueueFinding>& findings) {
  const auto failures = count_of(findings, health::Severity::failure);
  const auto warnings = count_of(findings, health::Severity::warning);
  std::string text = failures > 0 ? "unhealthy, " + counted(failures, "failure") : "healthy";
  if (warnings > 0) text += ", " + counted(warnings, "warning");
  return text;
}

std::string headline(const std::vector<health::QueueFinding>& findings, const StatusStyle& style) {
  if (style.outage == nullptr) return painted(verdict_text(findings), health::worst(findings), style.colour);
  return painted(
      fmt::format("no answer for {}; the last report is below", status::age_text(style.outage->lasts)),
      health::Severity::failure, style.colour);
}

std::string render_findings(const std::vector<health::QueueFinding>& findings, const StatusStyle& style) {
  std::string text;
  for (std::size_t i = 0; i < std::min(findings.size(), max_findings); ++i) {
    const auto& finding = findings[i];
    const std::string word = health::severity_name(finding.severity);
    const auto lines = wrapped(word + ": " + shown_text(finding.text), style.width, 2);
    text += "\n" + painted(word, finding.severity, style.colour) + lines.substr(word.size()) + "\n";
    // Not wrapped, so that it can be copied.
    if (!finding.fix.empty()) {
      for (const auto command : split(finding.fix, '\n'))
        text += "  fix: " + printable(command) + "\n";
    }
    if (!finding.hint.empty())
      text += "  " + wrapped("hint: " + shown_text(finding.hint), style.width - 2, 8) + "\n";
  }
  if (findings.size() > max_findings) {
    text += fmt::format("\n{} and {} more; -o json lists all\n", ellipsis(), findings.size() - max_findings);
  }
  return text;
}

/// With one decimal.
std::string rate_text(double rate) {
  const auto tenths = std::llround(rate * 10);
  return fmt::format("{}.{}", with_thousands(tenths / 10), tenths % 10);
}

std::string takes_text(const queue::QueueProperties& properties) {
  if (properties.actions.empty()) return "all";
  std::string text;
  for (const auto& action : properties.actions)
    text += (text.empty() ? "" : ", ") + shown_text(queue::short_action_name(action));
  return text;
}

std::string budget_text(const queue::Budget& budget, const std::string& queue) {
  const auto left = budget.left();
  const auto shared = budget.name == queue ? "" : ", shared as " + shown_text(budget.name);
  return fmt::format(
      "{}, burst {}{}: {}", config::format_rate(budget.paced.rate), with_thousands(budget.paced.burst),
      shared, left > 0 ? with_thousands(left) + " left" : "next in " + status::age_text(budget.wait_for(1)));
}

std::string asked_text(const messages::RecentRoles& asked) {
  constexpr std::size_t most = 3;
  std::string text = asked.is_partial ? "at least " : "";
  for (std::size_t i = 0; i < std::min(most, asked.roles.size()); ++i) {
    text += fmt::format("{}{} by {}", i == 0 ? "" : ", ", counted(asked.roles[i].all.messages, "message"),
                        shown_text(asked.roles[i].role));
  }
  if (asked.roles.size() > most)
    text +=
        fmt::format(", and by {}", counted(static_cast<std::int64_t>(asked.roles.size() - most), "other"));
  return text + " in the last hour";
}

std::string pause_text(const queue::QueuePause& pause) {
  return fmt::format("since {} ({} ago), by {}{}{}", moment_text(pause.since), status::age_text(pause.lasts),
                     shown_text(pause.actor), pause.reason.empty() ? "" : ": ", shown_text(pause.reason));
}

}  // namespace mailroom::cmd
