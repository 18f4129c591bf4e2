#include "bench/report.hpp"

#include <fmt/format.h>

#include "base/json.hpp"
#include "bench/targets.hpp"
#include "cmd/terminal/text_table.hpp"

namespace mailroom::bench {
namespace {

using Align = cmd::TextTable::Align;

std::string range_text(const Spread& spread) {
  return number_text(spread.min) + " - " + number_text(spread.max);
}

std::string figures_table(const Results& results) {
  cmd::TextTable table(
      {{"row"}, {"median", Align::right}, {"min - max", Align::right}, {"unit"}, {"runs", Align::right}});
  for (const auto& series : results.all()) {
    const auto spread = spread_of(series.values);
    table.add({series.name, number_text(spread.median), range_text(spread), series.unit,
               std::to_string(series.values.size())});
  }
  return table.render(120);
}

std::string targets_table(const std::vector<Verdict>& verdicts) {
  cmd::TextTable table(
      {{"asked"}, {"", Align::right}, {"measured", Align::right}, {"min - max", Align::right}, {""}});
  for (const auto& verdict : verdicts) {
    table.add({verdict.target->meaning,
               (verdict.target->at_least ? ">= " : "<= ") + number_text(verdict.target->asked),
               number_text(verdict.measured.median), range_text(verdict.measured),
               verdict.reached ? "reached" : "not reached"});
  }
  return table.render(120);
}

nlohmann::ordered_json spread_json(const Spread& spread) {
  return {{"median", spread.median}, {"min", spread.min}, {"max", spread.max}};
}

}  // namespace

std::string render_text(const Results& results, const Machine& machine) {
  auto text = describe(machine) + '\n' + figures_table(results);
  if (const auto verdicts = judge(results); !verdicts.empty()) text += '\n' + targets_table(verdicts);
  for (const auto& failure : results.failures())
    text += "\nfailed: " + failure;
  return results.failures().empty() ? text : text + '\n';
}

std::string render_json(const Results& results, const Machine& machine, double scale) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const auto& series : results.all()) {
    auto row = spread_json(spread_of(series.values));
    row["name"] = series.name;
    row["unit"] = series.unit;
    row["values"] = series.values;
    rows.push_back(std::move(row));
  }
  nlohmann::ordered_json asked = nlohmann::ordered_json::array();
  for (const auto& verdict : judge(results)) {
    auto entry = spread_json(verdict.measured);
    entry["meaning"] = verdict.target->meaning;
    entry["asked"] = verdict.target->asked;
    entry["at_least"] = verdict.target->at_least;
    entry["reached"] = verdict.reached;
    asked.push_back(std::move(entry));
  }
  const nlohmann::ordered_json all{{"machine", to_json(machine)},
                                   {"scale", scale},
                                   {"rows", rows},
                                   {"asked", asked},
                                   {"failures", results.failures()}};
  return all.dump(2) + '\n';
}

}  // namespace mailroom::bench
