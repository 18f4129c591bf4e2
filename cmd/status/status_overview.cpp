// Merges the findings that queues have in common, and shows several queues as a table.

#include <algorithm>
#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "cmd/status/status_report.hpp"
#include "cmd/terminal/text_table.hpp"

namespace mailroom::cmd {
namespace {

/// A finding, and the queues that have it.
struct SharedFinding {
  health::QueueFinding finding;
  std::vector<std::string> queues;
};

std::vector<SharedFinding> collect_findings(const StatusOverview& overview) {
  std::vector<SharedFinding> shared;
  for (const auto& report : overview.queues) {
    for (const auto& finding : report.findings) {
      auto same = std::find_if(shared.begin(), shared.end(), [&](const SharedFinding& other) {
        return other.finding.severity == finding.severity && other.finding.code == finding.code &&
               other.finding.text == finding.text && other.finding.fix == finding.fix &&
               other.finding.hint == finding.hint;
      });
      if (same == shared.end()) same = shared.insert(same, {.finding = finding, .queues = {}});
      same->queues.push_back(report.queue.queue);
    }
  }
  return shared;
}

/// `paused 5m by ops`, `rate: next in 3s`, with the other failures; or else the verdict.
std::string queue_state_text(const StatusReport& report) {
  const auto& record = report.queue.record;
  const auto wait = record.wait_for(1);
  std::string text;
  if (record.pause) {
    text = fmt::format("paused {} by {}", status::age_text(record.pause->lasts),
                       shown_text(record.pause->actor));
  } else if (wait > Milliseconds{0} && report.queue.pending.total() > 0) {
    text = "rate: next in " + status::age_text(wait);
  }
  const auto failures = std::ranges::count_if(report.findings, [](const health::QueueFinding& finding) {
    return finding.severity == health::Severity::failure && finding.code != "paused";
  });
  const auto warnings = count_of(report.findings, health::Severity::warning);
  if (failures > 0) return text + (text.empty() ? "" : ", ") + counted(failures, "failure");
  if (!text.empty()) return text;
  return warnings > 0 ? counted(warnings, "warning") : "healthy";
}

std::string render_table(const StatusOverview& overview, std::size_t width) {
  using Align = TextTable::Align;
  TextTable table({{"queue", Align::left, true},
                   {"takes"},
                   {"priority", Align::right},
                   {"pending", Align::right},
                   {"oldest", Align::right},
                   {"emitted/s", Align::right},
                   {"collectors", Align::right},
                   {"state", Align::left, true}});
  for (const auto& report : overview.queues) {
    const auto& queue = report.queue;
    const auto lag = queue.lag();
    table.add({shown_text(queue.queue), takes_text(queue.record.properties),
               std::to_string(queue.record.properties.priority),
               fmt::format("{}{}", queue.pending.estimated ? "~" : "", with_thousands(queue.pending.total())),
               lag ? status::age_text(*lag) : "-", rate_text(queue.emissions.per_second()),
               queue.on_standby ? "?" : std::to_string(queue.collectors.size()), queue_state_text(report)});
  }
  return table.render(width);
}

}  // namespace

std::vector<health::QueueFinding> findings_of(const StatusOverview& overview) {
  std::vector<health::QueueFinding> findings;
  for (auto& [finding, queues] : collect_findings(overview)) {
    if (queues.size() < overview.queues.size())
      finding.text = fmt::format("{}: {}", joined(queues, ", "), finding.text);
    findings.push_back(std::move(finding));
  }
  std::stable_sort(
      findings.begin(), findings.end(),
      [](const health::QueueFinding& a, const health::QueueFinding& b) { return a.severity > b.severity; });
  return findings;
}

ExitCode judge(const StatusOverview& overview) {
  return health::worst(findings_of(overview)) == health::Severity::failure ? ExitCode::unusable
                                                                           : ExitCode::done;
}

std::string render_text(const StatusOverview& overview, const StatusStyle& style) {
  const auto& first = overview.queues.front();
  if (overview.is_single()) return render_text(first, style);
  const auto findings = findings_of(overview);
  auto text = fmt::format("{} queues: {}\n", overview.queues.size(), headline(findings, style));
  if (style.outage != nullptr) text += labelled("reason", shown_text(style.outage->reason), style.width);
  text += labelled("at", moment_text(first.queue.now), style.width);
  if (!first.asked.roles.empty()) text += labelled("asked for", asked_text(first.asked), style.width);
  return text + "\n" + render_table(overview, style.width) + render_findings(findings, style);
}

std::string render_line(const StatusOverview& overview) {
  std::string text;
  for (const auto& report : overview.queues)
    text += render_line(report, overview.is_single() ? "" : report.queue.queue);
  return text;
}

}  // namespace mailroom::cmd
