// Parses with a regular expression, and adds up in milliseconds without an overflow.

#include "base/duration.hpp"

#include <array>
#include <cstdint>
#include <regex>

namespace mailroom {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t milliseconds;
};

constexpr std::array<Unit, 5> units{
    {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}}};

constexpr std::int64_t longest = 100LL * 365 * 86'400'000;

}  // namespace

std::optional<Milliseconds> parse_duration(std::string_view text) {
  // At most 18 digits, so that each number fits. The last one is the bare number.
  static const std::regex form(
      R"((?:(\d{1,18})d)?(?:(\d{1,18})h)?(?:(\d{1,18})m)?(?:(\d{1,18})s)?(?:(\d{1,18})ms)?|(\d{1,18}))");
  std::match_results<std::string_view::iterator> parts;
  if (text.empty() || !std::regex_match(text.begin(), text.end(), parts, form)) return std::nullopt;
  std::int64_t total = 0;
  for (std::size_t i = 0; i <= units.size(); ++i) {
    if (!parts[i + 1].matched) continue;
    const auto number = std::stoll(parts[i + 1]);
    const auto unit = i < units.size() ? units[i].milliseconds : 1;
    if (number > (longest - total) / unit) return std::nullopt;
    total += number * unit;
  }
  return Milliseconds{total};
}

std::string format_duration(Milliseconds duration) {
  auto rest = duration.count();
  if (rest == 0) return "0s";
  std::string text;
  for (const auto& unit : units) {
    if (const auto count = rest / unit.milliseconds; count > 0) {
      text += std::to_string(count).append(unit.name);
      rest %= unit.milliseconds;
    }
  }
  return text;
}

}  // namespace mailroom
