#include "cmd/simulate/simulate_report.hpp"

#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
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

std::string render_play(const SimulationSummary& summary) {
  const auto& total = summary.total;
  auto text = summary_row("accounts", total.accounts);
  text += summary_row("tokens", total.tokens);
  text += summary_row("activated", total.activated);
  text += summary_row("recovered", total.recovered);
  text += summary_row("suspended", total.suspended);
  if (total.expired > 0) text += summary_row("expired", total.expired);
  text += summary_row("seconds", fmt::format("{:.2f}", summary.seconds));
  text += summary_row("accounts/s", std::llround(summary.accounts_per_second));
  text += summary_row("transactions", total.latency.count());
  text += latency_row("p50", total.latency.percentile(50));
  text += latency_row("p95", total.latency.percentile(95));
  text += latency_row("p99", total.latency.percentile(99));
  text += latency_row("max", total.latency.max());
  return text;
}

void add_play(nlohmann::ordered_json& object, const SimulationSummary& summary) {
  const auto& total = summary.total;
  object["accounts"] = total.accounts;
  object["tokens"] = total.tokens;
  object["activated"] = total.activated;
  object["recovered"] = total.recovered;
  object["suspended"] = total.suspended;
  object["expired"] = total.expired;
  object["seconds"] = rounded(summary.seconds);
  object["accounts_per_second"] = rounded(summary.accounts_per_second);
  object["transactions"] = total.latency.count();
  object["latency_ms"] = {{"p50", milliseconds(total.latency.percentile(50))},
                          {"p95", milliseconds(total.latency.percentile(95))},
                          {"p99", milliseconds(total.latency.percentile(99))},
                          {"max", milliseconds(total.latency.max())}};
}

}  // namespace

std::string render_text(const SimulateReport& report) {
  std::string text;
  if (report.seed) text += summary_row("seed", std::to_string(*report.seed));
  if (report.played) text += render_play(*report.played);
  if (report.removed) text += summary_row("removed", *report.removed);
  if (report.stopped) text += "stopped by a signal before the end\n";
  return text;
}

std::string render_json(const SimulateReport& report) {
  nlohmann::ordered_json object;
  if (report.seed) object["seed"] = *report.seed;
  if (report.played) add_play(object, *report.played);
  if (report.removed) object["removed"] = *report.removed;
  object["stopped"] = report.stopped;
  return json_text(object) + "\n";
}

}  // namespace mailroom
