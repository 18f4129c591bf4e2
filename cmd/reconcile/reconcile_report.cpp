// The outcomes with their explanations, and the ids of tokens at fault, as text and as JSON.

#include "cmd/reconcile/reconcile_report.hpp"

#include <fmt/format.h>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/wording.hpp"
#include "cmd/terminal/text_table.hpp"

namespace mailroom::cmd {
namespace {

using Json = nlohmann::ordered_json;

/// An explanation is shown whole, with the reason that an operator gave.
constexpr std::size_t widest_report = 1000;
/// Of the ids of each fault; --list has all.
constexpr std::size_t shown_ranges = 10;

std::string counts_table(const reconcile::QueueReconciliation& queue) {
  TextTable table({{"tokens", TextTable::Align::right},
                   {"outcome", TextTable::Align::left, true},
                   {"explanation", TextTable::Align::left, true}});
  for (const auto& count : queue.counts)
    table.add(
        {with_thousands(count.tokens), fate::outcome_text(count.outcome), shown_text(count.explanation)});
  return table.render(widest_report, 2);
}

/// Tokens that were emitted and are gone, and how.
std::string deleted_text(std::int64_t deleted, const std::optional<Moment>& pruned_at) {
  if (deleted == 0) return "";
  const bool one = deleted == 1;
  return fmt::format(
      "  {} that {} emitted {} no longer in the database: deleted{}, with {} or alone\n",
      counted(deleted, "token"), one ? "was" : "were", one ? "is" : "are",
      pruned_at ? fmt::format(" by mailroom prune, which last ran {}", moment_text(*pruned_at)) : "",
      one ? "its account" : "their accounts");
}

std::string render_queue(const reconcile::QueueReconciliation& queue,
                         const std::optional<Moment>& pruned_at) {
  auto text = fmt::format("\nqueue {}: {}\n", shown_text(queue.queue), counted(queue.tokens, "token"));
  if (queue.tokens > 0) text += counts_table(queue);
  text += deleted_text(queue.deleted, pruned_at);
  for (const auto& holder : queue.gap_holders)
    text += fmt::format("  a gap waits for {}\n", shown_text(holder));
  for (const auto& faulty : queue.faulty)
    text += fmt::format("  {}: {} ({})\n", fate::outcome_name(faulty.outcome),
                        selection::id_ranges_text(faulty.ids), faulty.reason);
  return text;
}

std::string render_output(const reconcile::ConsumerOutput& output) {
  auto text = fmt::format("\noutput of the consumers: {} in {}", counted(output.tokens, "token"),
                          counted(output.lines, "line"));
  if (output.torn_lines > 0) text += fmt::format(", and {} cut off", counted(output.torn_lines, "line"));
  text += "\n";
  for (const auto& defect : output.defects)
    text += fmt::format("  {}:{}: {}\n", shown_text(defect.file), defect.line, defect.text);
  return text;
}

/// `scheduled: 3 messages, the next at 2026-11-26T11:00:00Z; they have no token before their time`
std::string scheduled_text(const status::ScheduledMessages& scheduled, Moment now) {
  if (scheduled.messages == 0) return "";
  return fmt::format("\nscheduled: {}{}, the next {} {}; a message has no token before its time\n",
                     scheduled.estimated ? "~" : "", counted(scheduled.messages, "message"),
                     *scheduled.next_at > now ? "at" : "due since", moment_text(*scheduled.next_at));
}

/// `without a token: messages 7, 5; mailroom doctor prints how to send what is of the last day`
std::string lost_text(const status::LostMessages& lost, std::int64_t accounts) {
  std::string text;
  if (accounts > 0) {
    text += fmt::format("\nwithout a token: {} of the last day; mailroom doctor prints how to mail {}\n",
                        counted(accounts, "account"), accounts == 1 ? "it" : "them");
  }
  if (lost.messages > 0) {
    text += fmt::format("\nwithout a token: {}; mailroom doctor prints how to send what is of the last day\n",
                        status::messages_text(lost.newest, lost.messages));
  }
  if (lost.unfit > 0) {
    text += fmt::format("\nwithout a token, and to be refused: {}\n",
                        status::messages_text(lost.newest_unfit, lost.unfit));
  }
  return text;
}

Json lost_json(const status::LostMessages& lost, std::int64_t accounts) {
  if (!lost.is_known) return nullptr;
  auto ids = lost.newest;
  ids.insert(ids.end(), lost.newest_unfit.begin(), lost.newest_unfit.end());
  return {{"messages", lost.total()}, {"newest", ids}, {"accounts", accounts}};
}

Json scheduled_json(const status::ScheduledMessages& scheduled) {
  if (!scheduled.is_known) return nullptr;
  return {{"messages", scheduled.messages},
          {"estimated", scheduled.estimated},
          {"next_at", scheduled.next_at ? moment_json<Json>(*scheduled.next_at) : Json(nullptr)}};
}

/// `50 expired, 36 rejected`: explained, and not well.
std::string undelivered_text(const reconcile::Reconciliation& result) {
  std::string text;
  const auto add = [&](std::int64_t tokens, const std::string& word) {
    if (tokens > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", with_thousands(tokens), word);
  };
  using enum fate::Outcome;
  for (const auto outcome : {rejected, expired, bounced, complained, unknown, dead})
    add(result.tokens_with(outcome), fate::outcome_text(outcome));
  std::int64_t unsent = 0;
  for (const auto& queue : result.queues) {
    for (const auto& count : queue.counts) {
      if (count.outcome == skipped && count.explanation.find("expired") != std::string::npos)
        unsent += count.tokens;
    }
  }
  add(unsent, "skipped as expired");
  return text;
}

std::string verdict(const ReconcileReport& report) {
  if (is_explained(report)) {
    const auto undelivered = undelivered_text(report.result);
    return undelivered.empty()
               ? "every token is explained\n"
               : fmt::format("not all is well: {}; nothing is missed or unexplained\n", undelivered);
  }
  std::string text;
  for (const auto outcome : {fate::Outcome::missed, fate::Outcome::unexplained}) {
    const auto tokens = report.result.tokens_with(outcome);
    if (tokens > 0) text += fmt::format("{}: {}\n", fate::outcome_name(outcome), counted(tokens, "token"));
  }
  if (report.result.lost.total() > 0)
    text += fmt::format("never sent, without a token: {}\n", counted(report.result.lost.total(), "message"));
  if (report.result.accounts_without_token > 0)
    text += fmt::format("never mailed, without a token: {}\n",
                        counted(report.result.accounts_without_token, "account"));
  if (report.output != nullptr && report.output->defective > 0)
    text += fmt::format("not genuine, or unknown: {}\n", counted(report.output->defective, "token"));
  return text;
}

Json output_json(const reconcile::ConsumerOutput* output) {
  if (output == nullptr) return nullptr;
  return {{"lines", output->lines},
          {"tokens", output->tokens},
          {"torn_lines", output->torn_lines},
          {"defective", output->defective},
          {"defects", array_json<Json>(output->defects, [](const auto& defect) {
             return Json{{"file", defect.file}, {"line", defect.line}, {"text", defect.text}};
           })}};
}

Json faulty_json(const reconcile::FaultyIds& faulty) {
  auto ranges = Json::array();
  for (std::size_t i = 0; i < faulty.ids.size() && i < shown_ranges; ++i)
    ranges.push_back({faulty.ids[i].first, faulty.ids[i].end - 1});
  return {{"outcome", fate::outcome_name(faulty.outcome)},
          {"reason", faulty.reason},
          {"ids", ranges},
          {"complete", faulty.omitted == 0 && ranges.size() == faulty.ids.size()}};
}

Json queue_json(const reconcile::QueueReconciliation& queue) {
  return {{"queue", queue.queue},
          {"tokens", queue.tokens},
          {"deleted", queue.deleted},
          {"missed", queue.tokens_with(fate::Outcome::missed)},
          {"unexplained", queue.tokens_with(fate::Outcome::unexplained)},
          {"outcomes", array_json<Json>(queue.counts,
                                        [](const auto& count) {
                                          return Json{{"outcome", fate::outcome_name(count.outcome)},
                                                      {"explanation", count.explanation.empty()
                                                                          ? Json(nullptr)
                                                                          : Json(count.explanation)},
                                                      {"tokens", count.tokens}};
                                        })},
          {"gap_holders", queue.gap_holders},
          {"faulty_ids", array_json<Json>(queue.faulty, [](const auto& each) { return faulty_json(each); })}};
}

}  // namespace

bool is_explained(const ReconcileReport& report) {
  return report.result.tokens_with(fate::Outcome::missed) +
                 report.result.tokens_with(fate::Outcome::unexplained) ==
             0 &&
         report.result.lost.total() == 0 && report.result.accounts_without_token == 0 &&
         (report.output == nullptr || report.output->defective == 0);
}

std::string render_text(const ReconcileReport& report) {
  const auto& result = report.result;
  auto text = fmt::format("tokens created from {} to {}\n", moment_text(result.period.since),
                          moment_text(result.period.until));
  for (const auto& queue : result.queues)
    text += render_queue(queue, result.pruned_at);
  text +=
      scheduled_text(result.scheduled, result.now) + lost_text(result.lost, result.accounts_without_token);
  if (report.output != nullptr) text += render_output(*report.output);
  return text + "\n" + verdict(report);
}

std::string render_json(const ReconcileReport& report) {
  const auto& result = report.result;
  const Json object{
      {"now", moment_json<Json>(result.now)},
      {"since", moment_json<Json>(result.period.since)},
      {"pruned_at", result.pruned_at ? moment_json<Json>(*result.pruned_at) : Json(nullptr)},
      {"until", moment_json<Json>(result.period.until)},
      {"missed", result.tokens_with(fate::Outcome::missed)},
      {"unexplained", result.tokens_with(fate::Outcome::unexplained)},
      {"scheduled", scheduled_json(result.scheduled)},
      {"without_token", lost_json(result.lost, result.accounts_without_token)},
      {"output", output_json(report.output)},
      {"queues", array_json<Json>(result.queues, [](const auto& queue) { return queue_json(queue); })}};
  return json_text(object) + "\n";
}

}  // namespace mailroom::cmd
