// Lays out what audit says: sentences, next steps and events.

#include <algorithm>
#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/printable.hpp"
#include "base/terminal_text.hpp"
#include "base/wording.hpp"
#include "cmd/audit/audit_report.hpp"
#include "cmd/terminal/text_table.hpp"

namespace mailroom::cmd {
namespace {

std::string paragraph(const std::string& text, Width width) {
  return wrapped(shown_text(text), width, 2) + "\n";
}

std::string render_entries(const audit::Timeline& timeline, Width width) {
  std::size_t widest = 0;
  for (const auto& event : timeline.entries)
    widest = std::max(widest, event_name(event).size());
  std::string text;
  for (const auto& event : timeline.entries) {
    const auto start = fmt::format("{}  {:<{}}  ", moment_text(event.at), event_name(event), widest);
    const auto details = event_details(event);
    text += start + wrapped(details, width, start.size(), start.size()) + "\n";
  }
  return text;
}

std::string render_totals(const audit::Overview& overview, Width width) {
  using Align = TextTable::Align;
  TextTable table({{"queue"},
                   {"batches", Align::right},
                   {"emitted", Align::right},
                   {"skipped", Align::right},
                   {"repeated", Align::right},
                   {"open", Align::right},
                   {"dead", Align::right}});
  for (const auto& queue : overview.queues) {
    table.add({shown_text(queue.queue), with_thousands(queue.batches), with_thousands(queue.emitted),
               with_thousands(queue.skipped.total()), with_thousands(queue.repeated),
               with_thousands(queue.open), with_thousands(queue.dead)});
  }
  return table.empty() ? "no batches\n" : table.render(width == 0 ? 80 : width);
}

}  // namespace

std::string render_text(const audit::History& history, Width width) {
  std::string text;
  for (const auto& sentence : history_sentences(history)) {
    text += paragraph(sentence.text, width);
    if (!sentence.trace.empty()) text += "  trace " + sentence.trace + "\n";
  }
  for (const auto& step : history.next)
    text += paragraph(step.text + ":", width) + "  " + step.command + "\n";
  if (!history.timeline.entries.empty()) text += "\n";
  return text + render_entries(history.timeline, width);
}

std::string render_text(const audit::Overview& overview, Width width) {
  auto text = fmt::format("{} to {}\n\n", moment_text(overview.period.since),
                          moment_text(std::min(overview.period.until, overview.now))) +
              render_totals(overview, width) + "\n";
  if (overview.timeline.entries.empty()) return text + "no operations and no migrations\n";
  return text + render_entries(overview.timeline, width);
}

}  // namespace mailroom::cmd
