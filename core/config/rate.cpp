// Keeps decimals exact: a fraction becomes a whole number in a longer period.

#include "config/rate.hpp"

#include <fmt/format.h>
#include <map>

#include "base/clock.hpp"
#include "base/text.hpp"

namespace mailroom::config {
namespace {

using namespace std::chrono_literals;

constexpr int largest_count = 1'000'000'000;
/// Of a decimal fraction.
constexpr std::size_t most_digits = 6;

const std::map<std::string_view, Milliseconds> rate_units{{"s", 1s}, {"min", 1min}, {"h", 1h}, {"d", 24h}};

/// A number with decimals as a whole number of units of 1/scale.
struct Decimal {
  int number = 0;
  int scale = 1;
};

std::optional<int> count_of_rate(std::string_view text) {
  const auto count = parse_number<int>(text);
  return count && *count >= 0 && *count <= largest_count && text.front() != '-' ? count : std::nullopt;
}

/// Reads `14` or `0.38`, which must not be 0.
std::optional<Decimal> parse_decimal(std::string_view text) {
  const auto point = text.find('.');
  std::string digits(text.substr(0, point));
  Decimal decimal;
  if (point != std::string_view::npos) {
    auto fraction = text.substr(point + 1);
    if (digits.empty() || fraction.empty() || fraction.size() > most_digits) return std::nullopt;
    fraction = fraction.substr(0, fraction.find_last_not_of('0') + 1);
    for (std::size_t digit = 0; digit < fraction.size(); ++digit)
      decimal.scale *= 10;
    digits += fraction;
  }
  const auto number = count_of_rate(digits);
  if (!number || *number == 0) return std::nullopt;
  decimal.number = *number;
  return decimal;
}

/// `0.38` for 38 of a scale of 100; empty unless parse_decimal reads it back to the same value.
std::string decimal_text(int number, int scale) {
  if (scale == 1) return std::to_string(number);
  if (number % 10 == 0) return "";
  const auto digits = std::to_string(scale).size() - 1;
  return fmt::format("{}.{:0{}}", number / scale, number % scale, digits);
}

}  // namespace

std::optional<Rate> parse_rate(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto count = parse_decimal(text.substr(0, slash));
  if (!count) return std::nullopt;
  const auto rest = text.substr(slash + 1);
  if (const auto unit = rate_units.find(rest); unit != rate_units.end())
    return Rate{count->number, unit->second * count->scale};
  const auto period = parse_duration(rest);
  if (!period || *period < 1ms || count->scale > 1) return std::nullopt;
  return Rate{count->number, *period};
}

std::string format_rate(const Rate& rate) {
  for (const auto& [name, unit] : rate_units) {
    int scale = 1;
    for (std::size_t digits = 0; digits <= most_digits; ++digits, scale *= 10) {
      if (unit * scale != rate.period) continue;
      const auto text = decimal_text(rate.count, scale);
      if (!text.empty()) return fmt::format("{}/{}", text, name);
    }
  }
  return fmt::format("{}/{}", rate.count, format_duration(rate.period));
}

}  // namespace mailroom::config
