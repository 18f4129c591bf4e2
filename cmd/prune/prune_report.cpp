#include "cmd/prune/prune_report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/duration.hpp"
#include "base/json_text.hpp"
#include "base/moment.hpp"
#include "base/text.hpp"
#include "cmd/terminal/text_table.hpp"

namespace mailroom {
namespace {

std::string moment_of(const PruneReport& report) {
  return fmt::format("{} ({} ago)", moment_text(report.before), format_duration(report.older_than));
}

std::string render_counts(const PruneReport& report) {
  const auto& summary = report.summary;
  if (summary.empty() && (summary.stopped || summary.skipped > 0)) return "nothing removed\n";
  if (summary.empty()) return fmt::format("nothing to remove that ended before {}\n", moment_of(report));
  TextTable table({{""}, {"", TextTable::Align::right}});
  table.add({"tokens", with_thousands(summary.tokens)});
  table.add({"batch records", with_thousands(summary.batches)});
  return fmt::format("{} what ended before {}:\n{}", report.dry_run ? "would remove" : "removed",
                     moment_of(report), table.render(80, 2));
}

}  // namespace

std::string render_text(const PruneReport& report) {
  const auto& summary = report.summary;
  auto text = render_counts(report);
  if (summary.skipped > 0) {
    text += fmt::format("left for the next run: {} that other sessions were changing\n",
                        counted(summary.skipped, "row"));
  }
  if (const auto& held = summary.held_back) {
    text += fmt::format("held back: what ended above token {}, until the cursor of queue {} has passed it\n",
                        with_thousands(held->cursor), shown_text(held->queue));
  }
  if (summary.stopped) text += "stopped by a signal before the end\n";
  return text;
}

std::string render_json(const PruneReport& report) {
  const auto& summary = report.summary;
  nlohmann::ordered_json object{{"dry_run", report.dry_run},
                                {"older_than", format_duration(report.older_than)},
                                {"before", moment_text(report.before)},
                                {"tokens", summary.tokens},
                                {"batches", summary.batches},
                                {"skipped", summary.skipped},
                                {"held_back", nullptr},
                                {"stopped", summary.stopped}};
  if (const auto& held = summary.held_back)
    object["held_back"] = {{"queue", held->queue}, {"cursor", held->cursor}};
  return json_text(object) + "\n";
}

}  // namespace mailroom
