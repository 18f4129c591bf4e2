// Reads words from the left; what is left at the end makes it no time.

#include "resend_api/schedule.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "resend_api/local_time.hpp"

namespace mailroom::resend_api {
namespace {

using std::chrono::local_days;
using std::chrono::microseconds;
using std::chrono::seconds;

/// What is left of a text.
class Words {
 public:
  explicit Words(std::string_view text) : text_(trimmed(text)) {}

  bool is_at_end() const { return text_.empty(); }
  /// Takes `word` if it is the next, and ends there.
  bool take(std::string_view word) {
    if (!text_.starts_with(word)) return false;
    const auto rest = text_.substr(word.size());
    if (!rest.empty() && (std::isalnum(static_cast<unsigned char>(rest.front())) != 0 || rest.front() == '_'))
      return false;
    text_ = trimmed(rest);
    return true;
  }
  bool take_sign(char sign) {
    if (!text_.starts_with(sign)) return false;
    text_.remove_prefix(1);
    return true;
  }
  /// A number of `least` to `most` digits.
  std::optional<int> digits(std::size_t least, std::size_t most) {
    const auto size = std::min(text_.find_first_not_of("0123456789"), text_.size());
    if (size < least || size > most) return std::nullopt;
    const auto number = parse_number<int>(text_.substr(0, size));
    text_.remove_prefix(size);
    return number;
  }
  std::string_view rest() const { return text_; }
  void skip_blanks() { text_ = trimmed(text_); }
  void drop(std::size_t size) { text_.remove_prefix(size); }

 private:
  std::string_view text_;
};

/// `Z`, `+02:00`, `+0200`, `+02`.
std::optional<TimeZone> take_offset(Words& words) {
  if (words.take_sign('z')) return TimeZone::fixed(seconds(0));
  const int sign = words.take_sign('+') ? 1 : words.take_sign('-') ? -1 : 0;
  if (sign == 0) return std::nullopt;
  auto hours = words.digits(2, 4);
  if (!hours) return std::nullopt;
  int minutes = 0;
  if (*hours > 24) {
    minutes = *hours % 100;
    hours = *hours / 100;
  } else if (words.take_sign(':')) {
    minutes = words.digits(2, 2).value_or(60);
  }
  if (*hours > 15 || minutes > 59) return std::nullopt;
  return TimeZone::fixed(sign * (std::chrono::hours(*hours) + std::chrono::minutes(minutes)));
}

/// `et`, `cest`, `europe/vienna`; the text in lower case has lost the case of a name.
std::optional<TimeZone> named_zone(std::string_view lower, std::string_view as_written) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> regions{
      {{"et", "America/New_York"},
       {"ct", "America/Chicago"},
       {"mt", "America/Denver"},
       {"pt", "America/Los_Angeles"},
       {"z", "UTC"}}};
  constexpr std::array<std::pair<std::string_view, int>, 20> offsets{
      {{"utc", 0},  {"gmt", 0},  {"est", -5}, {"edt", -4},  {"cst", -6},  {"cdt", -5},  {"mst", -7},
       {"mdt", -6}, {"pst", -8}, {"pdt", -7}, {"akst", -9}, {"akdt", -8}, {"hst", -10}, {"wet", 0},
       {"west", 1}, {"bst", 1},  {"cet", 1},  {"cest", 2},  {"eet", 2},   {"eest", 3}}};
  for (const auto& [name, zone] : regions)
    if (name == lower) return TimeZone::find(zone);
  for (const auto& [name, hours] : offsets)
    if (name == lower) return TimeZone::fixed(std::chrono::hours(hours));
  // The files of zones have weekdays such as Europe/Vienna.
  if (lower.find('/') == std::string_view::npos) return std::nullopt;
  auto name = std::string(as_written);
  if (auto zone = TimeZone::find(name)) return zone;
  bool begins = true;
  for (auto& c : name) {
    c = static_cast<char>(begins ? std::toupper(static_cast<unsigned char>(c))
                                 : std::tolower(static_cast<unsigned char>(c)));
    begins = c == '/' || c == '_' || c == '-';
  }
  return TimeZone::find(name);
}

std::optional<microseconds> take_fraction(Words& words) {
  if (!words.take_sign('.') && !words.take_sign(',')) return microseconds(0);
  const auto size = std::min(words.rest().find_first_not_of("0123456789"), words.rest().size());
  if (size == 0 || size > 12) return std::nullopt;
  microseconds value(0);
  for (std::size_t i = 0; i < 6; ++i)
    value = value * 10 + microseconds(i < size ? words.rest()[i] - '0' : 0);
  words.drop(size);
  return value;
}

/// `09:30`, `09:30:15.5`.
std::optional<microseconds> take_clock(Words& words) {
  const auto hour = words.digits(2, 2);
  if (!hour || *hour > 23 || !words.take_sign(':')) return std::nullopt;
  const auto minute = words.digits(2, 2);
  if (!minute || *minute > 59) return std::nullopt;
  microseconds time = std::chrono::hours(*hour) + std::chrono::minutes(*minute);
  if (!words.take_sign(':')) return time;
  const auto second = words.digits(2, 2);
  // A leap second is the next one.
  if (!second || *second > 60) return std::nullopt;
  const auto fraction = take_fraction(words);
  if (!fraction) return std::nullopt;
  return time + seconds(*second) + *fraction;
}

std::optional<Moment> parse_iso(std::string_view text, const TimeZone& zone) {
  Words words(text);
  const auto year = words.digits(4, 4);
  if (!year || !words.take_sign('-')) return std::nullopt;
  const auto month = words.digits(2, 2);
  if (!month || !words.take_sign('-')) return std::nullopt;
  const auto day = words.digits(2, 2);
  if (!day) return std::nullopt;
  const auto date = std::chrono::year(*year) / *month / *day;
  if (!date.ok()) return std::nullopt;
  const LocalTime midnight{local_days(date)};
  if (words.is_at_end()) return zone.moment_of(midnight);
  if (!words.take_sign('t') && !words.take_sign(' ')) return std::nullopt;
  const auto time = take_clock(words);
  if (!time) return std::nullopt;
  words.skip_blanks();
  if (words.is_at_end()) return zone.moment_of(midnight + *time);
  const auto own = take_offset(words);
  if (!own || !words.is_at_end()) return std::nullopt;
  return own->moment_of(midnight + *time);
}

std::optional<microseconds> take_unit(Words& words) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 16> units{{{"s", 1},
                                                                             {"sec", 1},
                                                                             {"secs", 1},
                                                                             {"second", 1},
                                                                             {"seconds", 1},
                                                                             {"m", 60},
                                                                             {"min", 60},
                                                                             {"mins", 60},
                                                                             {"minute", 60},
                                                                             {"minutes", 60},
                                                                             {"h", 3600},
                                                                             {"hour", 3600},
                                                                             {"hours", 3600},
                                                                             {"day", 86400},
                                                                             {"days", 86400},
                                                                             {"week", 604800}}};
  for (const auto& [word, length] : units)
    if (words.take(word)) return seconds(length);
  if (words.take("weeks")) return seconds(604800);
  return std::nullopt;
}

/// Behind `in`.
std::optional<Moment> parse_delay(Words words, Moment now) {
  auto count = words.take("a") || words.take("an") ? std::optional(1) : words.digits(1, 6);
  words.skip_blanks();
  const auto unit = count ? take_unit(words) : std::nullopt;
  if (!unit || !words.is_at_end()) return std::nullopt;
  return now + *count * *unit;
}

/// Days from today on; nullopt if the words begin with no day.
std::optional<std::chrono::days> take_day(Words& words, LocalTime now) {
  using std::chrono::days;
  if (words.take("today")) return days(0);
  if (words.take("tomorrow")) return days(1);
  words.take("next");
  constexpr std::array<std::array<std::string_view, 2>, 7> weekdays{{{"sunday", "sun"},
                                                                     {"monday", "mon"},
                                                                     {"tuesday", "tue"},
                                                                     {"wednesday", "wed"},
                                                                     {"thursday", "thu"},
                                                                     {"friday", "fri"},
                                                                     {"saturday", "sat"}}};
  const std::chrono::weekday today(std::chrono::floor<days>(now));
  for (unsigned i = 0; i < weekdays.size(); ++i) {
    if (!words.take(weekdays[i][0]) && !words.take(weekdays[i][1])) continue;
    const auto ahead = std::chrono::weekday(i) - today;
    return ahead == days(0) ? days(7) : ahead;
  }
  return std::nullopt;
}

/// `at 9am`, `at 15:30`, `noon`; nullopt inside for none.
bool take_time(Words& words, std::optional<microseconds>& time) {
  const bool has_at = words.take("at");
  if (words.take("noon")) {
    time = std::chrono::hours(12);
    return true;
  }
  if (words.take("midnight")) {
    time = std::chrono::hours(0);
    return true;
  }
  if (!has_at) return true;
  const auto hour = words.digits(1, 2);
  if (!hour) return false;
  int minute = 0;
  if (words.take_sign(':')) minute = words.digits(2, 2).value_or(60);
  words.skip_blanks();
  const bool is_morning = words.take("am") || words.take("a.m.");
  const bool is_evening = !is_morning && (words.take("pm") || words.take("p.m."));
  const bool has_half = is_morning || is_evening;
  if (minute > 59 || *hour > (has_half ? 12 : 23) || (has_half && *hour == 0)) return false;
  time = std::chrono::hours(has_half ? *hour % 12 + (is_evening ? 12 : 0) : *hour) +
         std::chrono::minutes(minute);
  return true;
}

std::optional<Moment> parse_words(std::string_view lower, std::string_view as_written, Moment now,
                                  const TimeZone& zone) {
  Words words(lower);
  if (words.take("now")) return words.is_at_end() ? std::optional(now) : std::nullopt;
  if (words.take("in")) return parse_delay(words, now);
  // The day depends on the zone, which comes last: so it is read twice.
  const auto read = [&](const TimeZone& in, bool& has_zone,
                        std::optional<TimeZone>& own) -> std::optional<Moment> {
    Words each(lower);
    const auto wall = in.wall_of(now);
    const auto day = take_day(each, wall);
    if (!day) return std::nullopt;
    std::optional<microseconds> time;
    if (!take_time(each, time)) return std::nullopt;
    has_zone = !each.is_at_end();
    if (has_zone) {
      const auto size = each.rest().size();
      own = named_zone(each.rest(), as_written.substr(as_written.size() - size));
      if (!own) {
        own = take_offset(each);
        if (!each.is_at_end()) own.reset();
      }
    }
    const auto today = std::chrono::floor<std::chrono::days>(wall);
    return in.moment_of(LocalTime(today + *day) + time.value_or(wall - today));
  };
  bool has_zone = false;
  std::optional<TimeZone> own;
  const auto found = read(zone, has_zone, own);
  if (!found || !has_zone) return found;
  if (!own) return std::nullopt;
  std::optional<TimeZone> same;
  return read(*own, has_zone, same);
}

}  // namespace

std::optional<Moment> parse_schedule(std::string_view text, Moment now, const std::string& zone) {
  const auto written = trimmed(text);
  if (written.empty() || written.size() > 100) return std::nullopt;
  const auto own = TimeZone::find(zone);
  if (!own) return std::nullopt;
  const auto lower = lower_case(written);
  if (std::isdigit(static_cast<unsigned char>(lower.front())) != 0) return parse_iso(lower, *own);
  return parse_words(lower, written, now, *own);
}

}  // namespace mailroom::resend_api
