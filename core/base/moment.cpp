// Parses RFC 3339 and times ago, and formats in UTC. Dates outside the years 0000 to 9999 become words.

#include "base/moment.hpp"

#include <fmt/chrono.h>
#include <regex>

#include "base/duration.hpp"

namespace mailroom {
namespace {

/// A date, with or without a time and an offset from UTC.
std::optional<Moment> parse_date(std::string_view text) {
  static const std::regex form(
      R"((\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d))?(?:[Zz]|([+-])(\d\d):?(\d\d))?)?)");
  std::match_results<std::string_view::iterator> parts;
  if (!std::regex_match(text.begin(), text.end(), parts, form)) return std::nullopt;
  const auto number = [&](std::size_t part) { return parts[part].matched ? std::stoi(parts[part]) : 0; };
  const auto date = std::chrono::year(number(1)) / number(2) / number(3);
  const bool is_time = number(4) < 24 && number(5) < 60 && number(6) <= 60;
  if (!date.ok() || !is_time || number(8) > 14 || number(9) > 59) return std::nullopt;
  const auto time = [&](std::size_t part) {
    return std::chrono::hours(number(part)) + std::chrono::minutes(number(part + 1));
  };
  const auto local = std::chrono::sys_days(date) + time(4) + std::chrono::seconds(number(6));
  return parts[7] == "-" ? local + time(8) : local - time(8);
}

}  // namespace

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
