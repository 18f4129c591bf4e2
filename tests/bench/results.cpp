#include "bench/results.hpp"

#include <algorithm>

namespace mailroom::bench {

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto middle = values.size() / 2;
  const double median = values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back()};
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
