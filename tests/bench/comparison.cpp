#include "bench/comparison.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iostream>
#include <sstream>

#include "base/json.hpp"
#include "cmd/terminal/text_table.hpp"

namespace mailroom::bench {
namespace {

namespace fs = std::filesystem;

constexpr double tolerance = 0.05;

/// More of a rate is better, and less of all else that has a unit. A share has none, and says nothing.
bool is_worse(const std::string& unit, double ratio) {
  if (unit.empty()) return false;
  return unit.ends_with("/s") ? ratio < 1 - tolerance : ratio > 1 + tolerance;
}

struct Pairs {
  std::vector<double> ours{};
  std::vector<double> theirs{};
  std::vector<double> ratios{};
};

/// Of a figure, from each run that has it twice.
Pairs pairs_of(const std::vector<Turn>& turns, const std::string& name) {
  Pairs pairs;
  for (const auto& turn : turns) {
    const auto* mine = turn.ours.find(name);
    const auto* other = turn.theirs.find(name);
    if (mine == nullptr || other == nullptr || other->values.front() == 0) continue;
    pairs.ours.push_back(mine->values.front());
    pairs.theirs.push_back(other->values.front());
    pairs.ratios.push_back(mine->values.front() / other->values.front());
  }
  return pairs;
}

std::string text_of(const fs::path& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::vector<Turn> read_turns(const std::string& directory) {
  std::vector<Turn> turns;
  for (int run = 1; run <= 100; ++run) {
    const auto ours = text_of(fs::path(directory) / fmt::format("{}.this.json", run));
    const auto theirs = text_of(fs::path(directory) / fmt::format("{}.other.json", run));
    if (!ours.empty() && !theirs.empty()) turns.push_back({read_results(ours), read_results(theirs)});
  }
  return turns;
}

}  // namespace

std::vector<Compared> compare(const std::vector<Turn>& turns) {
  std::vector<Compared> rows;
  for (const auto& turn : turns) {
    for (const auto& series : turn.ours.all()) {
      if (std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return row.name == series.name; }))
        continue;
      const auto pairs = pairs_of(turns, series.name);
      if (pairs.ratios.empty()) continue;
      const auto ratio = spread_of(pairs.ratios);
      rows.push_back({.name = series.name,
                      .unit = series.unit,
                      .ours = spread_of(pairs.ours),
                      .theirs = spread_of(pairs.theirs),
                      .ratio = ratio,
                      .is_worse = is_worse(series.unit, ratio.median)});
    }
  }
  return rows;
}

std::string render_comparison(const std::vector<Compared>& rows, const std::string& other) {
  using Align = cmd::TextTable::Align;
  cmd::TextTable table({{"row"},
                        {"this", Align::right},
                        {other, Align::right},
                        {"ratio", Align::right},
                        {"min - max", Align::right},
                        {"unit"},
                        {""}});
  for (const auto& row : rows) {
    table.add({row.name, number_text(row.ours.median), number_text(row.theirs.median),
               fmt::format("{:.2f}", row.ratio.median),
               fmt::format("{:.2f} - {:.2f}", row.ratio.min, row.ratio.max), row.unit,
               row.is_worse ? "worse" : ""});
  }
  return table.render(120);
}

Results read_results(const std::string& json) {
  Results results;
  const auto all = parse_json(json);
  for (const auto& row : all["rows"])
    results.add(row["name"].get<std::string>(),
                {{.value = row["values"][0].get<double>(), .unit = row["unit"].get<std::string>()}});
  return results;
}

int print_comparison(const std::string& directory, const std::string& other) {
  const auto rows = compare(read_turns(directory));
  if (rows.empty()) throw std::runtime_error("no row was measured of both");
  std::cout << render_comparison(rows, other);
  return 0;
}

}  // namespace mailroom::bench
