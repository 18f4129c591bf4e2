#include "bench/results.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/wording.hpp"

namespace mailroom::bench {

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto middle = values.size() / 2;
  const double median = values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back()};
}

std::string number_text(double value) {
  const double size = std::abs(value);
  if (size >= 100) return with_thousands(std::llround(value));
  if (value == std::floor(value)) return fmt::format("{:.0f}", value);
  return size >= 10 ? fmt::format("{:.1f}", value) : fmt::format("{:.{}f}", value, size >= 0.1 ? 2 : 4);
}

void Results::add(const std::string& row, const Figures& figures) {
  for (const auto& figure : figures) {
    const auto name = figure.name.empty() ? row : row + " " + figure.name;
    auto found =
        std::find_if(series_.begin(), series_.end(), [&](const auto& each) { return each.name == name; });
    if (found == series_.end()) found = series_.insert(found, {.name = name, .unit = figure.unit});
    found->values.push_back(figure.value);
  }
}

const Series* Results::find(const std::string& name) const {
  const auto found =
      std::find_if(series_.begin(), series_.end(), [&](const auto& each) { return each.name == name; });
  return found == series_.end() ? nullptr : &*found;
}

}  // namespace mailroom::bench
