// Eight heights: block characters in a UTF-8 locale, ASCII elsewhere.

#include "base/sparkline.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/locale_text.hpp"

namespace mailroom {
namespace {

constexpr std::size_t bars_count = 8;
using Bars = std::array<std::string_view, bars_count>;
constexpr Bars blocks{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr Bars letters{"_", ".", ":", "-", "=", "+", "*", "#"};

}  // namespace

double largest(const std::vector<std::optional<double>>& values) {
  double most = 0;
  for (const auto& value : values)
    most = std::max(most, value.value_or(0));
  return most;
}

std::string sparkline(const std::vector<std::optional<double>>& values) {
  const auto& bars = shows_utf8() ? blocks : letters;
  constexpr double highest = bars_count - 1;
  const double most = largest(values);
  std::string line;
  for (const auto& value : values) {
    if (!value) {
      line += ' ';
      continue;
    }
    // Round up, so that only zero gets the lowest bar.
    const double part = most > 0 ? *value / most : 0;
    line += bars.at(static_cast<std::size_t>(std::ceil(part * highest)));
  }
  return line;
}

}  // namespace mailroom
