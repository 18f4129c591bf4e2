#include "base/sparkline.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace mailroom {
namespace {

constexpr std::array<std::string_view, 8> bars{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

}  // namespace

double largest(const std::vector<std::optional<double>>& values) {
  double most = 0;
  for (const auto& value : values)
    most = std::max(most, value.value_or(0));
  return most;
}

std::string sparkline(const std::vector<std::optional<double>>& values) {
  const double most = largest(values);
  std::string line;
  for (const auto& value : values) {
    if (!value) {
      line += ' ';
      continue;
    }
    // Rounded up, so that only nothing looks like nothing.
    const double part = most > 0 ? *value / most : 0;
    line += bars.at(static_cast<std::size_t>(std::ceil(part * (bars.size() - 1))));
  }
  return line;
}

}  // namespace mailroom
