#include "base/moment.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <fmt/chrono.h>

#include "base/duration.hpp"

namespace mailroom {
namespace {

// The database stores any bigint; a date has a four-digit year only from year_0 to before year_10000.
constexpr std::int64_t year_0 = -62'167'219'200;
constexpr std::int64_t year_10000 = 253'402'300'800;

/// Takes exactly `digits` digits from the front of `text`.
std::optional<int> take_digits(std::string_view& text, std::size_t digits) {
  if (text.size() < digits) return std::nullopt;
  int number = 0;
  const auto* end = text.data() + digits;
  if (text.front() == '-' || std::from_chars(text.data(), end, number).ptr != end) return std::nullopt;
  text.remove_prefix(digits);
  return number;
}

bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<std::int64_t> take_date(std::string_view& text) {
  const auto year = take_digits(text, 4);
  if (!year || !take(text, "-")) return std::nullopt;
  const auto month = take_digits(text, 2);
  if (!month || !take(text, "-")) return std::nullopt;
  const auto day = take_digits(text, 2);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch().count() * std::int64_t{86'400};
}

/// `09:30` or `09:30:15`, in seconds.
std::optional<std::int64_t> take_time(std::string_view& text) {
  const auto hour = take_digits(text, 2);
  if (!hour || *hour > 23 || !take(text, ":")) return std::nullopt;
  const auto minute = take_digits(text, 2);
  if (!minute || *minute > 59) return std::nullopt;
  std::optional<int> second = 0;
  if (take(text, ":")) second = take_digits(text, 2);
  if (!second || *second > 60) return std::nullopt;
  return *hour * 3600 + *minute * 60 + *second;
}

/// Seconds east of UTC: `Z`, `+02:00`, `-0330`, or an empty text (UTC).
std::optional<std::int64_t> take_offset(std::string_view& text) {
  if (text.empty() || take(text, "Zz")) return 0;
  const int sign = text.front() == '-' ? -1 : 1;
  if (!take(text, "+-")) return std::nullopt;
  const auto hours = take_digits(text, 2);
  if (!hours || *hours > 14) return std::nullopt;
  take(text, ":");
  const auto minutes = take_digits(text, 2);
  if (!minutes || *minutes > 59) return std::nullopt;
  return sign * (*hours * 3600 + *minutes * 60);
}

}  // namespace

std::optional<std::int64_t> parse_moment(std::string_view text, std::int64_t now) {
  if (const auto ago = parse_duration(text)) {
    return now - std::chrono::floor<std::chrono::seconds>(*ago).count();
  }
  const auto date = take_date(text);
  if (!date) return std::nullopt;
  if (text.empty()) return date;
  if (!take(text, "T t")) return std::nullopt;
  const auto time = take_time(text);
  if (!time) return std::nullopt;
  const auto offset = take_offset(text);
  if (!offset || !text.empty()) return std::nullopt;
  return *date + *time - *offset;
}

std::string moment_text(std::int64_t seconds) {
  if (seconds < year_0) return "before the year 0";
  return date_text(seconds).value_or("after the year 9999");
}

std::optional<std::string> date_text(std::int64_t seconds) {
  if (seconds < year_0 || seconds >= year_10000) return std::nullopt;
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

std::int64_t bounded_moment(std::int64_t seconds) {
  return std::clamp(seconds, year_0 - 1, year_10000);
}

std::int64_t to_microseconds(std::int64_t seconds) {
  return bounded_moment(seconds) * microseconds_a_second;
}

std::string precise_moment_text(std::int64_t microseconds) {
  auto seconds = microseconds / microseconds_a_second;
  auto fraction = microseconds % microseconds_a_second;
  if (fraction < 0) {
    --seconds;
    fraction += microseconds_a_second;
  }
  auto text = moment_text(seconds);
  return date_text(seconds) ? text.insert(text.size() - 1, fmt::format(".{:03}", fraction / 1000)) : text;
}

std::string moment_from(std::int64_t seconds, std::int64_t now) {
  if (seconds < year_0 || seconds >= year_10000) return moment_text(seconds);
  const auto distance = format_duration(std::chrono::seconds(std::llabs(seconds - now)));
  return fmt::format("{} ({})", moment_text(seconds), seconds > now ? "in " + distance : distance + " ago");
}

}  // namespace mailroom
