// Durations and points in time as text. Adds up in milliseconds without an overflow.

#include "base/clock.hpp"

#include <array>
#include <cstdint>
#include <fmt/chrono.h>

#include "base/pattern.hpp"

namespace mailroom {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t milliseconds;
};

constexpr std::array<Unit, 5> units{
    {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}}};

constexpr std::int64_t longest_duration = 100LL * 365 * 86'400'000;

/// A date, with or without a time and an offset from UTC.
std::optional<Moment> parse_date(std::string_view text) {
  static const Pattern form(
      R"((\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d))?(?:[Zz]|([+-])(\d\d):?(\d\d))?)?)");
  const auto parts = form.whole(text);
  if (!parts) return std::nullopt;
  const auto number = [&](std::size_t part) {
    return (*parts)[part].empty() ? 0 : std::stoi((*parts)[part]);
  };
  const auto date = std::chrono::year(number(1)) / number(2) / number(3);
  const bool is_time = number(4) < 24 && number(5) < 60 && number(6) <= 60;
  if (!date.ok() || !is_time || number(8) > 14 || number(9) > 59) return std::nullopt;
  const auto time = [&](std::size_t part) {
    return std::chrono::hours(number(part)) + std::chrono::minutes(number(part + 1));
  };
  const auto local = std::chrono::sys_days(date) + time(4) + std::chrono::seconds(number(6));
  return (*parts)[7] == "-" ? local + time(8) : local - time(8);
}

}  // namespace

std::optional<Milliseconds> parse_duration(std::string_view text) {
  // At most 18 digits, so that each number fits. The last one is the bare number.
  static const Pattern form(
      R"((?:(\d{1,18})d)?(?:(\d{1,18})h)?(?:(\d{1,18})m)?(?:(\d{1,18})s)?(?:(\d{1,18})ms)?|(\d{1,18}))");
  const auto parts = form.whole(text);
  if (text.empty() || !parts) return std::nullopt;
  std::int64_t total = 0;
  for (std::size_t i = 0; i <= units.size(); ++i) {
    const auto& digits = (*parts)[i + 1];
    if (digits.empty()) continue;
    const auto number = std::stoll(digits);
    const auto unit = i < units.size() ? units[i].milliseconds : 1;
    if (number > (longest_duration - total) / unit) return std::nullopt;
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

std::optional<Moment> parse_moment(std::string_view text, Moment now) {
  if (const auto ago = parse_duration(text)) return now - std::chrono::floor<std::chrono::seconds>(*ago);
  return parse_date(text);
}

std::string moment_text(Moment moment) {
  if (moment < year_0) return "before the year 0";
  return date_text(moment).value_or("after the year 9999");
}

std::optional<std::string> date_text(Moment moment) {
  if (moment < year_0 || moment >= year_10000) return std::nullopt;
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(in_seconds(moment))));
}

std::string precise_moment_text(Moment moment) {
  auto text = date_text(moment);
  if (!text) return moment_text(moment);
  const auto fraction = moment - std::chrono::floor<std::chrono::seconds>(moment);
  return text->insert(text->size() - 1, fmt::format(".{:03}", fraction / Milliseconds(1)));
}

std::string moment_from(Moment moment, Moment now) {
  const auto text = moment_text(moment);
  if (!date_text(moment)) return text;
  const auto distance = format_duration(std::chrono::floor<Milliseconds>(std::chrono::abs(moment - now)));
  return fmt::format("{} ({})", text, moment > now ? "in " + distance : distance + " ago");
}

}  // namespace mailroom
