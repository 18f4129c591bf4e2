#include "base/duration.hpp"

#include <array>
#include <charconv>
#include <cstdint>

namespace mailroom {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t milliseconds;
};

constexpr std::array<Unit, 5> units{
    {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}}};

constexpr std::int64_t longest = 100LL * 365 * 86'400'000;

/// Takes the digits at the front of `text`. Returns nullopt if there are none or the number exceeds
/// `longest`.
std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t number = 0;
  if (text.empty() || text.front() == '-') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number > longest) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

/// Takes the letters at the front of `text` and returns their index in `units`, at or after `first`.
std::optional<std::size_t> take_unit(std::string_view& text, std::size_t first) {
  const auto length = std::min(text.find_first_of("0123456789"), text.size());
  for (std::size_t i = first; i < units.size(); ++i) {
    if (units[i].name == text.substr(0, length)) {
      text.remove_prefix(length);
      return i;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Milliseconds> parse_duration(std::string_view text) {
  std::int64_t total = 0;
  std::size_t next_unit = 0;
  bool first = true;
  do {
    const auto number = take_number(text);
    if (!number) return std::nullopt;
    if (first && text.empty()) return Milliseconds{*number};
    const auto unit = take_unit(text, next_unit);
    if (!unit || *number > longest / units[*unit].milliseconds) return std::nullopt;
    total += *number * units[*unit].milliseconds;
    next_unit = *unit + 1;
    first = false;
  } while (!text.empty());
  if (total > longest) return std::nullopt;
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
