#include "cmd/audit/audit_report.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/moment.hpp"
#include "base/text.hpp"
#include "cmd/audit/audit_text.hpp"
#include "cmd/terminal/text_table.hpp"

namespace mailroom {
namespace {

std::string paragraph(const std::string& text, Width width) {
  return wrapped(shown_text(text), width, 2) + "\n";
}

std::string render_entries(const Timeline& timeline, Width width) {
  std::size_t widest = 0;
  for (const auto& entry : timeline.entries)
    widest = std::max(widest, what_text(entry.what).size());
  std::string text;
  for (const auto& entry : timeline.entries) {
    const auto start = fmt::format("{}  {:<{}}  ", moment_text(entry.at / microseconds_a_second),
                                   what_text(entry.what), widest);
    text += start + wrapped(shown_text(details_text(entry.what)), width, start.size(), start.size()) + "\n";
  }
  return text;
}

std::string account_text(const History& history) {
  const auto& account = history.account;
  if (!account) return fmt::format("account {}: no longer in the database", history.account_id);
  return fmt::format("account {} ({}, {}): {}", account->id, shown_text(account->login),
                     shown_text(account->email), shown_text(account->status));
}

/// One line per token.
std::string token_lines(const History& history, Width width) {
  std::string text;
  for (const auto& report : history.tokens)
    text += paragraph(status_text(report, history.now), width);
  const auto more = history.tokens_total - static_cast<std::int64_t>(history.tokens.size());
  if (more > 0) text += fmt::format("and {} older tokens\n", with_thousands(more));
  return text;
}

std::string render_totals(const Overview& overview, Width width) {
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
               with_thousands(queue.skipped()), with_thousands(queue.repeated), with_thousands(queue.open),
               with_thousands(queue.dead)});
  }
  return table.empty() ? "no batches\n" : table.render(width == 0 ? 80 : width);
}

}  // namespace

std::string render_text(const History& history, Width width) {
  std::string text;
  if (history.batch) text += paragraph(batch_text(*history.batch), width);
  // If a token was requested, its line precedes that of its account.
  if (history.is_of_account) text += paragraph(account_text(history), width);
  text += token_lines(history, width);
  if (!history.is_of_account && history.account_id != 0) text += paragraph(account_text(history), width);
  if (!history.timeline.entries.empty()) text += "\n";
  return text + render_entries(history.timeline, width);
}

std::string render_text(const Overview& overview, Width width) {
  auto text = fmt::format("{} to {}\n\n", moment_text(overview.period.since),
                          moment_text(std::min(overview.period.until, overview.now))) +
              render_totals(overview, width) + "\n";
  if (overview.timeline.entries.empty()) return text + "no operations and no migrations\n";
  return text + render_entries(overview.timeline, width);
}

}  // namespace mailroom
