// The percentiles between stages and the slowest tokens, as tables and as JSON.

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/wording.hpp"
#include "cmd/audit/audit_report.hpp"
#include "cmd/terminal/text_table.hpp"
#include "status/queue_sessions.hpp"

namespace mailroom::cmd {
namespace {

using Json = nlohmann::ordered_json;

/// `1.2ms`, `340ms`, `1.234s`, `4m12s`.
std::string seconds_text(audit::StageSeconds seconds) {
  if (seconds >= std::chrono::minutes(1)) return status::age_text(std::chrono::floor<Milliseconds>(seconds));
  const double ms = seconds.count() * 1000;
  if (ms >= 1000) return fmt::format("{:.3f}s", ms / 1000);
  return ms >= 10 ? fmt::format("{:.0f}ms", ms) : fmt::format("{:.1f}ms", ms);
}

std::string times_table(const audit::StageReport& report, std::size_t width) {
  TextTable table({{"from"},
                   {"to"},
                   {"tokens", TextTable::Align::right},
                   {"p50", TextTable::Align::right},
                   {"p90", TextTable::Align::right},
                   {"p99", TextTable::Align::right},
                   {"max", TextTable::Align::right}});
  for (const auto& times : report.stages) {
    table.add({audit::token_stage_name(times.from), audit::token_stage_name(times.to),
               with_thousands(times.tokens), seconds_text(times.p50), seconds_text(times.p90),
               seconds_text(times.p99), seconds_text(times.max)});
  }
  return table.render(width);
}

/// When a token reached a stage, as the time since its creation.
std::string since_creation(const audit::StagedToken& token, audit::TokenStage stage) {
  const auto& at = token.at[static_cast<std::size_t>(stage)];
  return at ? "+" + seconds_text(*at - *token.at.front()) : "-";
}

std::string slowest_table(const audit::StageReport& report, std::size_t width) {
  std::vector<TextTable::Column> columns{{"token", TextTable::Align::right},
                                         {"queue"},
                                         {"batch", TextTable::Align::right},
                                         {"created", TextTable::Align::left, true}};
  if (report.has_commits) columns.push_back({"committed", TextTable::Align::right});
  for (const auto* title : {"claimed", "signed", "emitted"})
    columns.push_back({title, TextTable::Align::right});
  const bool has_traces =
      std::ranges::any_of(report.slowest, [](const auto& token) { return !token.trace_id.empty(); });
  if (has_traces) columns.push_back({"trace", TextTable::Align::left, true});
  TextTable table(std::move(columns));
  for (const auto& token : report.slowest) {
    const bool is_mail = token.at[static_cast<std::size_t>(audit::TokenStage::accepted)].has_value();
    std::vector<std::string> cells{std::to_string(token.token), shown_text(token.queue),
                                   std::to_string(token.batch), moment_text(*token.at.front())};
    if (report.has_commits) cells.push_back(since_creation(token, audit::TokenStage::committed));
    cells.push_back(since_creation(token, audit::TokenStage::claimed));
    cells.push_back(since_creation(token, audit::TokenStage::signed_));
    cells.push_back(
        since_creation(token, is_mail ? audit::TokenStage::accepted : audit::TokenStage::written));
    if (has_traces) cells.push_back(token.trace_id.empty() ? "-" : token.trace_id);
    table.add(std::move(cells));
  }
  return table.render(width);
}

Json stage_json(const audit::StageTimes& times) {
  return {{"from", audit::token_stage_name(times.from)},
          {"to", audit::token_stage_name(times.to)},
          {"tokens", times.tokens},
          {"p50_seconds", times.p50.count()},
          {"p90_seconds", times.p90.count()},
          {"p99_seconds", times.p99.count()},
          {"max_seconds", times.max.count()}};
}

Json token_json(const audit::StagedToken& token) {
  Json object{{"token", token.token}, {"queue", token.queue}, {"batch", token.batch}};
  for (std::size_t i = 0; i < token.at.size(); ++i) {
    const auto name = fmt::format("{}_at", audit::token_stage_name(static_cast<audit::TokenStage>(i)));
    object[name] = token.at[i] ? Json(precise_moment_text(*token.at[i])) : Json(nullptr);
  }
  object["total_seconds"] = token.total.count();
  object["trace_id"] = text_or_null<Json>(token.trace_id);
  return object;
}

}  // namespace

std::string render_text(const audit::StageReport& report, std::size_t width) {
  auto text = fmt::format("tokens:   {} emitted\n", with_thousands(report.tokens));
  text +=
      fmt::format("commits:  {}\n", report.has_commits ? "known until a token is consumed"
                                                       : "unknown, because track_commit_timestamp is off");
  if (report.tokens == 0) return text;
  return text + "\n" + times_table(report, width) + "\nslowest:\n" + slowest_table(report, width);
}

std::string render_json(const audit::StageReport& report) {
  const Json object{{"type", "stages"},
                    {"since", moment_json<Json>(report.period.since)},
                    {"until", moment_json<Json>(std::min(report.period.until, report.now))},
                    {"tokens", report.tokens},
                    {"commits_known", report.has_commits},
                    {"stages", array_json<Json>(report.stages, stage_json)},
                    {"slowest", array_json<Json>(report.slowest, token_json)}};
  return json_text(object) + "\n";
}

}  // namespace mailroom::cmd
