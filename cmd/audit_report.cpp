#include "cmd/audit_report.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/moment.hpp"
#include "base/text.hpp"
#include "cmd/audit_words.hpp"
#include "cmd/text_table.hpp"

namespace mailroom {
namespace {

/// A reason or a name that somebody else chose must neither end the line nor steer the terminal.
std::string without_controls(std::string_view text) {
  std::string result(text);
  std::replace_if(
      result.begin(), result.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, ' ');
  return result;
}

/// `whole` on as many lines of `width` columns as it needs, the first of which has `taken` columns taken
/// already; the others begin behind `indent` spaces. A word that is too long for a line has one for itself.
std::string wrapped(const std::string& whole, Width width, std::size_t taken, std::size_t indent) {
  const auto clean = without_controls(whole);
  if (width == 0) return clean + "\n";
  std::string_view text = clean;
  std::string result;
  std::size_t column = taken;
  bool at_start = true;
  while (!text.empty()) {
    const auto word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (!at_start && column + 1 + display_width(word) > width) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
      at_start = true;
    }
    result += at_start ? "" : " ";
    result += word;
    column += (at_start ? 0 : 1) + display_width(word);
    at_start = false;
  }
  return result + "\n";
}

std::string paragraph(const std::string& text, Width width) {
  return wrapped(text, width, 0, 2);
}

std::string render_entries(const Timeline& timeline, Width width) {
  std::size_t widest = 0;
  for (const auto& entry : timeline.entries)
    widest = std::max(widest, what_text(entry.what).size());
  std::string text;
  for (const auto& entry : timeline.entries) {
    const auto start = fmt::format("{}  {:<{}}  ", moment_text(entry.at / microseconds_a_second),
                                   what_text(entry.what), widest);
    text += start + wrapped(details_text(entry.what), width, start.size(), start.size());
  }
  return text;
}

std::string account_text(const History& history) {
  const auto& account = history.account;
  if (!account) return fmt::format("account {}: not in the database (any more)", history.account_id);
  return fmt::format("account {} ({}, {}): {}", account->id, account->login, account->email, account->status);
}

/// A line a token.
std::string token_lines(const History& history, Width width) {
  std::string text;
  for (const auto& story : history.tokens)
    text += paragraph(fate_text(story, history.now), width);
  const auto more = history.tokens_total - static_cast<std::int64_t>(history.tokens.size());
  if (more > 0) text += fmt::format("and {} older tokens\n", with_thousands(more));
  return text;
}

std::string render_totals(const Overview& overview) {
  using Align = TextTable::Align;
  TextTable table({{"queue"},
                   {"batches", Align::right},
                   {"handed on", Align::right},
                   {"passed over", Align::right},
                   {"repeated", Align::right},
                   {"open", Align::right},
                   {"set aside", Align::right}});
  for (const auto& queue : overview.queues) {
    table.add({queue.queue, with_thousands(queue.batches), with_thousands(queue.handed_on),
               with_thousands(queue.passed_over()), with_thousands(queue.repeated),
               with_thousands(queue.open), with_thousands(queue.set_aside)});
  }
  return table.empty() ? "no batches\n" : table.render();
}

}  // namespace

std::string render_text(const History& history, Width width) {
  std::string text;
  if (history.batch) text += paragraph(batch_text(*history.batch), width);
  // A token's own line comes first where it was asked for.
  if (history.is_of_account) text += paragraph(account_text(history), width);
  text += token_lines(history, width);
  if (!history.is_of_account && history.account_id != 0) text += paragraph(account_text(history), width);
  if (!history.timeline.entries.empty()) text += "\n";
  return text + render_entries(history.timeline, width);
}

std::string render_text(const Overview& overview, Width width) {
  auto text = fmt::format("{} to {}\n\n", moment_text(overview.period.since),
                          moment_text(std::min(overview.period.until, overview.now))) +
              render_totals(overview) + "\n";
  if (overview.timeline.entries.empty()) return text + "no operations and no migrations\n";
  return text + render_entries(overview.timeline, width);
}

}  // namespace mailroom
