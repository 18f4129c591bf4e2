#include "base/moment.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fmt/chrono.h>
#include <regex>

#include "base/duration.hpp"

namespace mailroom {
namespace {

// The database stores any bigint; a date has a four-digit year only from year_0 to before year_10000.
constexpr std::int64_t year_0 = -62'167'219'200;
constexpr std::int64_t year_10000 = 253'402'300'800;

/// A date, with or without a time and an offset from UTC.
std::optional<std::int64_t> parse_date(std::string_view text) {
  static const std::regex form(
      R"((\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d))?(?:[Zz]|([+-])(\d\d):?(\d\d))?)?)");
  std::match_results<std::string_view::iterator> parts;
  if (!std::regex_match(text.begin(), text.end(), parts, form)) return std::nullopt;
  const auto number = [&](std::size_t part) { return parts[part].matched ? std::stoi(parts[part]) : 0; };
  const auto date = std::chrono::year(number(1)) / number(2) / number(3);
  const bool is_time = number(4) < 24 && number(5) < 60 && number(6) <= 60;
  if (!date.ok() || !is_time || number(8) > 14 || number(9) > 59) return std::nullopt;
  const auto offset = (parts[7] == "-" ? -1 : 1) * (number(8) * 3600 + number(9) * 60);
  return std::chrono::sys_days(date).time_since_epoch().count() * std::int64_t{86'400} + number(4) * 3600 +
         number(5) * 60 + number(6) - offset;
}

}  // namespace

std::optional<std::int64_t> parse_moment(std::string_view text, std::int64_t now) {
  if (const auto ago = parse_duration(text)) {
    return now - std::chrono::floor<std::chrono::seconds>(*ago).count();
  }
  return parse_date(text);
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
