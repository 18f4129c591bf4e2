// Counts, rates and latencies, as aligned lines and as JSON.

#include "cmd/simulate/simulate_report.hpp"

#include <cmath>
#include <fmt/format.h>

#include "base/json.hpp"
#include "base/text.hpp"

namespace mailroom {
namespace {

double milliseconds(std::chrono::microseconds latency) {
  return static_cast<double>(latency.count()) / 1000;
}

double rounded(double number) {
  return std::round(number * 1000) / 1000;
}

std::string summary_row(const std::string& label, const std::string& value) {
  return fmt::format("{:<13} {:>12}\n", label + ":", value);
}

std::string summary_row(const std::string& label, std::int64_t number) {
  return summary_row(label, with_thousands(number));
}

std::string latency_row(const std::string& label, std::chrono::microseconds latency) {
  return summary_row("latency " + label, fmt::format("{:.3f}", milliseconds(latency))).insert(26, " ms");
}

/// The counts, by their names in both formats.
std::vector<std::pair<std::string, std::int64_t>> counts_of(const SimulationTally& total) {
  return {{"accounts", total.accounts},   {"tokens", total.tokens},       {"activated", total.activated},
          {"recovered", total.recovered}, {"suspended", total.suspended}, {"expired", total.expired}};
}

std::string render_latency(const LatencyHistogram& latency) {
  auto text = summary_row("transactions", latency.count());
  for (const int percent : {50, 95, 99})
    text += latency_row(fmt::format("p{}", percent), latency.percentile(percent));
  return text + latency_row("max", latency.max());
}

nlohmann::ordered_json latency_json(const LatencyHistogram& latency) {
  nlohmann::ordered_json object;
  for (const int percent : {50, 95, 99})
    object[fmt::format("p{}", percent)] = milliseconds(latency.percentile(percent));
  object["max"] = milliseconds(latency.max());
  return object;
}

std::string render_play(const SimulationSummary& summary) {
  const auto& latency = summary.total.latency;
  std::string text;
  for (const auto& [name, count] : counts_of(summary.total)) {
    if (name != "expired" || count > 0) text += summary_row(name, count);
  }
  text += summary_row("seconds", fmt::format("{:.2f}", summary.seconds));
  text += summary_row("accounts/s", std::llround(summary.accounts_per_second));
  return text + render_latency(latency);
}

double per_second(const MessageTally& sent) {
  return sent.seconds > 0 ? static_cast<double>(sent.messages) / sent.seconds : 0;
}

std::string render_sent(const MessageTally& sent) {
  return summary_row("messages", sent.messages) + summary_row("messages/s", std::llround(per_second(sent))) +
         render_latency(sent.latency);
}

void add_play(nlohmann::ordered_json& object, const SimulationSummary& summary) {
  const auto& latency = summary.total.latency;
  for (const auto& [name, count] : counts_of(summary.total))
    object[name] = count;
  object["seconds"] = rounded(summary.seconds);
  object["accounts_per_second"] = rounded(summary.accounts_per_second);
  object["transactions"] = latency.count();
  object["latency_ms"] = latency_json(latency);
}

nlohmann::ordered_json sent_json(const MessageTally& sent) {
  return {{"messages", sent.messages},
          {"seconds", rounded(sent.seconds)},
          {"messages_per_second", rounded(per_second(sent))},
          {"transactions", sent.latency.count()},
          {"latency_ms", latency_json(sent.latency)}};
}

}  // namespace

std::string render_text(const SimulateReport& report) {
  std::string text;
  if (report.seed) text += summary_row("seed", std::to_string(*report.seed));
  if (report.played) text += render_play(*report.played);
  if (report.sent) text += render_sent(*report.sent);
  if (report.removed) text += summary_row("removed", *report.removed);
  if (report.stopped) text += "stopped by a signal before the end\n";
  return text;
}

std::string render_json(const SimulateReport& report) {
  nlohmann::ordered_json object;
  if (report.seed) object["seed"] = *report.seed;
  if (report.played) add_play(object, *report.played);
  if (report.sent) object["messages"] = sent_json(*report.sent);
  if (report.removed) object["removed"] = *report.removed;
  object["stopped"] = report.stopped;
  return json_text(object) + "\n";
}

}  // namespace mailroom
