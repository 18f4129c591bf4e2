// The classes with their explanations, and the ids of unexplained tokens, as text and as JSON.

#include "cmd/reconcile/reconcile_report.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/text.hpp"
#include "cmd/terminal/text_table.hpp"

namespace mailroom {
namespace {

using Json = nlohmann::ordered_json;

/// An explanation is shown whole, with the reason that an operator gave.
constexpr std::size_t widest_report = 1000;

/// `emitted again`
std::string class_text(TokenClass token_class) {
  std::string text = token_class_name(token_class);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string counts_table(const QueueReconciliation& queue) {
  TextTable table({{"tokens", TextTable::Align::right},
                   {"class", TextTable::Align::left, true},
                   {"explanation", TextTable::Align::left, true}});
  for (const auto& count : queue.counts)
    table.add({with_thousands(count.tokens), class_text(count.token_class), shown_text(count.explanation)});
  return table.render(widest_report, 2);
}

/// A line for each range, so that a script can read them.
std::string listed_ids(const UnexplainedIds& unexplained) {
  std::string text;
  for (const auto& range : unexplained.ids)
    text += "    " + id_range_text(range) + "\n";
  if (unexplained.omitted > 0) text += fmt::format("    and {} more\n", with_thousands(unexplained.omitted));
  return text;
}

std::string render_queue(const QueueReconciliation& queue, bool lists_ids) {
  auto text = fmt::format("\nqueue {}: {}\n", shown_text(queue.queue), counted(queue.tokens, "token"));
  if (queue.tokens > 0) text += counts_table(queue);
  for (const auto& holder : queue.gap_holders)
    text += fmt::format("  a gap waits for {}\n", shown_text(holder));
  for (const auto& unexplained : queue.unexplained) {
    text += lists_ids ? fmt::format("  unexplained, {}:\n{}", unexplained.reason, listed_ids(unexplained))
                      : fmt::format("  unexplained: {} ({})\n", id_ranges_text(unexplained.ids),
                                    unexplained.reason);
  }
  return text;
}

std::string render_output(const ConsumerOutput& output) {
  auto text = fmt::format("\noutput of the consumers: {} in {}", counted(output.tokens, "token"),
                          counted(output.lines, "line"));
  if (output.torn_lines > 0) text += fmt::format(", and {} cut off", counted(output.torn_lines, "line"));
  text += "\n";
  for (const auto& defect : output.defects)
    text += fmt::format("  {}:{}: {}\n", shown_text(defect.file), defect.line, defect.text);
  return text;
}

std::string verdict(const ReconcileReport& report) {
  if (is_explained(report)) return "every token is explained\n";
  std::string text;
  if (const auto unexplained = report.result.unexplained_tokens(); unexplained > 0)
    text += fmt::format("unexplained: {}\n", counted(unexplained, "token"));
  if (report.output != nullptr && report.output->defective > 0)
    text += fmt::format("not genuine, or unknown: {}\n", counted(report.output->defective, "token"));
  return text;
}

Json output_json(const ConsumerOutput* output) {
  if (output == nullptr) return nullptr;
  return {{"lines", output->lines},
          {"tokens", output->tokens},
          {"torn_lines", output->torn_lines},
          {"defective", output->defective},
          {"defects", array_json<Json>(output->defects, [](const auto& defect) {
             return Json{{"file", defect.file}, {"line", defect.line}, {"text", defect.text}};
           })}};
}

Json ids_json(const UnexplainedIds& unexplained, bool lists_ids) {
  auto ranges = Json::array();
  for (std::size_t i = 0; i < unexplained.ids.size() && (lists_ids || i < 10); ++i)
    ranges.push_back({unexplained.ids[i].first, unexplained.ids[i].end - 1});
  return {{"reason", unexplained.reason},
          {"ids", ranges},
          {"complete", unexplained.omitted == 0 && ranges.size() == unexplained.ids.size()}};
}

Json queue_json(const QueueReconciliation& queue, bool lists_ids) {
  return {{"queue", queue.queue},
          {"tokens", queue.tokens},
          {"unexplained", queue.unexplained_tokens()},
          {"classes", array_json<Json>(queue.counts,
                                       [](const auto& count) {
                                         return Json{{"class", token_class_name(count.token_class)},
                                                     {"explanation", count.explanation.empty()
                                                                         ? Json(nullptr)
                                                                         : Json(count.explanation)},
                                                     {"tokens", count.tokens}};
                                       })},
          {"gap_holders", queue.gap_holders},
          {"unexplained_ids",
           array_json<Json>(queue.unexplained, [&](const auto& each) { return ids_json(each, lists_ids); })}};
}

}  // namespace

bool is_explained(const ReconcileReport& report) {
  return report.result.unexplained_tokens() == 0 &&
         (report.output == nullptr || report.output->defective == 0);
}

std::string render_text(const ReconcileReport& report) {
  const auto& result = report.result;
  auto text = fmt::format("tokens created from {} to {}\n", moment_text(result.period.since),
                          moment_text(result.period.until));
  for (const auto& queue : result.queues)
    text += render_queue(queue, report.lists_ids);
  if (report.output != nullptr) text += render_output(*report.output);
  return text + "\n" + verdict(report);
}

std::string render_json(const ReconcileReport& report) {
  const auto& result = report.result;
  const Json object{{"now", moment_json<Json>(result.now)},
                    {"since", moment_json<Json>(result.period.since)},
                    {"until", moment_json<Json>(result.period.until)},
                    {"unexplained", result.unexplained_tokens()},
                    {"output", output_json(report.output)},
                    {"queues", array_json<Json>(result.queues, [&](const auto& queue) {
                       return queue_json(queue, report.lists_ids);
                     })}};
  return json_text(object) + "\n";
}

}  // namespace mailroom
