#include "base/rate.hpp"

#include <fmt/format.h>
#include <map>

#include "base/duration.hpp"
#include "base/text.hpp"

namespace mailroom {
namespace {

using namespace std::chrono_literals;

constexpr int largest_count = 1'000'000'000;

const std::map<std::string_view, Milliseconds> rate_units{{"s", 1s}, {"min", 1min}, {"h", 1h}, {"d", 24h}};

}  // namespace

std::optional<Rate> parse_rate(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto count = parse_number<int>(text.substr(0, slash));
  if (!count || *count < 1 || *count > largest_count) return std::nullopt;
  const auto rest = text.substr(slash + 1);
  if (const auto unit = rate_units.find(rest); unit != rate_units.end()) return Rate{*count, unit->second};
  const auto period = parse_duration(rest);
  if (!period || *period < 1ms) return std::nullopt;
  return Rate{*count, *period};
}

std::string format_rate(const Rate& rate) {
  for (const auto& [name, period] : rate_units) {
    if (period == rate.period) return fmt::format("{}/{}", rate.count, name);
  }
  return fmt::format("{}/{}", rate.count, format_duration(rate.period));
}

}  // namespace mailroom
