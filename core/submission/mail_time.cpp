// By std::chrono's calendar and without a locale, which strptime() has.

#include "submission/mail_time.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace mailroom::submission {
namespace {

constexpr std::array<std::string_view, 12> month_names{"jan", "feb", "mar", "apr", "may", "jun",
                                                       "jul", "aug", "sep", "oct", "nov", "dec"};

/// Reads a text from its beginning; what is read wrong once is wrong for good.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  int number(std::size_t least, std::size_t most) {
    std::size_t count = 0;
    int value = 0;
    for (; count < most && count < text_.size() && text_[count] >= '0' && text_[count] <= '9'; ++count)
      value = value * 10 + (text_[count] - '0');
    is_wrong_ = is_wrong_ || count < least;
    text_.remove_prefix(count);
    return value;
  }
  bool take(char c) {
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  void want(char c) { is_wrong_ = !take(c) || is_wrong_; }
  void skip_blanks() { text_.remove_prefix(std::min(text_.find_first_not_of(" \t\r\n"), text_.size())); }
  std::string word() {
    std::size_t count = 0;
    while (count < text_.size() && ((text_[count] | 0x20) >= 'a') && ((text_[count] | 0x20) <= 'z'))
      ++count;
    auto taken = lower_case(text_.substr(0, count));
    text_.remove_prefix(count);
    return taken;
  }
  void fail() { is_wrong_ = true; }
  bool is_wrong() const { return is_wrong_; }
  std::string_view rest() const { return text_; }

 private:
  std::string_view text_;
  bool is_wrong_ = false;
};

struct Clock {
  int hours = 0;
  int minutes = 0;
  int seconds = 0;
};

Clock read_clock(Scanner& scanner) {
  Clock clock;
  clock.hours = scanner.number(2, 2);
  scanner.want(':');
  clock.minutes = scanner.number(2, 2);
  if (scanner.take(':')) clock.seconds = scanner.number(2, 2);
  if (scanner.take('.')) scanner.number(1, 9);
  return clock;
}

std::chrono::minutes read_offset(Scanner& scanner) {
  scanner.skip_blanks();
  const bool is_west = scanner.take('-');
  if (is_west || scanner.take('+')) {
    const int hours = scanner.number(2, 2);
    scanner.take(':');
    const int minutes = scanner.number(2, 2);
    if (hours > 23 || minutes > 59) scanner.fail();
    return (is_west ? -1 : 1) * std::chrono::minutes(hours * 60 + minutes);
  }
  const auto zone = scanner.word();
  if (zone != "z" && zone != "gmt" && zone != "ut" && zone != "utc") scanner.fail();
  return {};
}

std::optional<Moment> moment_of(std::chrono::year_month_day date, const Clock& clock,
                                std::chrono::minutes offset) {
  using namespace std::chrono;
  if (!date.ok() || clock.hours > 23 || clock.minutes > 59 || clock.seconds > 60) return std::nullopt;
  return Moment(sys_days(date)) + hours(clock.hours) + minutes(clock.minutes) + seconds(clock.seconds) -
         offset;
}

}  // namespace

std::optional<Moment> parse_mail_time(std::string_view text) {
  using namespace std::chrono;
  Scanner scanner(trimmed(text));
  const bool is_iso = scanner.rest().size() > 4 && scanner.rest()[4] == '-';
  int day_of_month = 0;
  unsigned month_number = 0;
  int year_number = 0;
  if (is_iso) {
    year_number = scanner.number(4, 4);
    scanner.want('-');
    month_number = static_cast<unsigned>(scanner.number(2, 2));
    scanner.want('-');
    day_of_month = scanner.number(2, 2);
    if (!scanner.take('T') && !scanner.take('t')) scanner.want(' ');
  } else {
    if (!scanner.word().empty()) scanner.want(',');
    scanner.skip_blanks();
    day_of_month = scanner.number(1, 2);
    scanner.skip_blanks();
    const auto found = std::ranges::find(month_names, scanner.word());
    month_number = static_cast<unsigned>(found - month_names.begin()) + 1;
    scanner.skip_blanks();
    year_number = scanner.number(4, 4);
    scanner.skip_blanks();
  }
  const auto clock = read_clock(scanner);
  const auto offset = read_offset(scanner);
  scanner.skip_blanks();
  // A date of a mail may end in a comment: (CET).
  if (scanner.is_wrong() || !(scanner.rest().empty() || scanner.rest().starts_with('('))) return std::nullopt;
  return moment_of(year(year_number) / month(month_number) / day(static_cast<unsigned>(day_of_month)), clock,
                   offset);
}

}  // namespace mailroom::submission
