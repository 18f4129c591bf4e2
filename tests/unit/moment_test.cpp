#include <limits>

#include "base/clock.hpp"
#include "base/terminal_text.hpp"
#include "base/wording.hpp"
#include "cmd/terminal/text_table.hpp"
#include "support/catch.hpp"
#include "support/with_locale.hpp"

namespace mailroom::test::moment_test {

using namespace std::chrono_literals;

namespace {

constexpr Moment at(std::int64_t seconds) {
  return bounded_moment(std::chrono::seconds(seconds));
}

}  // namespace

TEST_CASE("a moment is a date, a time, or a duration ago") {
  constexpr auto now = at(1'800'000'000);
  const std::vector<std::pair<std::string, Moment>> cases{
      {"10m", now - 10min},
      {"2h30m", now - 150min},
      {"0s", now},
      {"250ms", now},
      {"1970-01-01", at(0)},
      {"2026-11-21", at(1'795'219'200)},
      {"2026-11-21T09:30", at(1'795'253'400)},
      {"2026-11-21 09:30:15", at(1'795'253'415)},
      {"2026-11-21T09:30:15Z", at(1'795'253'415)},
      {"2026-11-21T09:30:15+02:00", at(1'795'246'215)},
      {"2026-11-21T09:30:15-0330", at(1'795'266'015)},
      {"2024-02-29", at(1'709'164'800)},
  };
  for (const auto& [text, expected] : cases) {
    CAPTURE(text);
    CHECK(parse_moment(text, now) == expected);
  }
}

TEST_CASE("text that is no moment is refused") {
  for (const std::string text :
       {"", "yesterday", "2026-13-01", "2026-02-30", "2025-02-29", "2026-11-21T", "2026-11-21T9:30",
        "2026-11-21T24:00", "2026-11-21T09:60", "2026-11-21T09:30:15z0", "2026-11-21T09:30+", "2026-11-21x",
        "-5m", "2026-1-1", "2026-11-21T09:30+15:00", "26-11-21"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_moment(text, at(0)));
  }
}

TEST_CASE("a moment is shown in UTC, with its distance from now") {
  CHECK(moment_text(at(1'795'253'415)) == "2026-11-21T09:30:15Z");
  CHECK(moment_text(at(4'102'444'800)) == "2100-01-01T00:00:00Z");
  CHECK(moment_from(at(1'795'253'415), at(1'795'253'355)) == "2026-11-21T09:30:15Z (in 1m)");
  CHECK(moment_from(at(1'795'253'415), at(1'795'253'475)) == "2026-11-21T09:30:15Z (1m ago)");
}

TEST_CASE("a moment outside the calendar is shown as before the year 0 or after the year 9999") {
  constexpr auto least = std::numeric_limits<std::int64_t>::min();
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  CHECK(moment_text(at(253'402'300'799)) == "9999-12-31T23:59:59Z");
  CHECK(moment_text(at(253'402'300'800)) == "after the year 9999");
  CHECK(moment_text(at(-62'167'219'200)) == "0000-01-01T00:00:00Z");
  CHECK(moment_text(at(-62'167'219'201)) == "before the year 0");
  CHECK(moment_text(at(most)) == "after the year 9999");
  CHECK(moment_from(at(most), at(-1)) == "after the year 9999");
  CHECK(moment_from(at(least), at(1)) == "before the year 0");
}

TEST_CASE("a precise moment before 1970 has the milliseconds after its second") {
  CHECK(precise_moment_text(at(1'795'253'415) + 266'999us) == "2026-11-21T09:30:15.266Z");
  CHECK(precise_moment_text(at(0) - 1us) == "1969-12-31T23:59:59.999Z");
  CHECK(precise_moment_text(at(-1)) == "1969-12-31T23:59:59.000Z");
}

TEST_CASE("text is cut between characters") {
  const test::WithLocale locale("C.UTF-8");
  CHECK(display_width("größe") == 5);
  CHECK(fit("größe", 5) == "größe");
  CHECK(fit("größer", 5) == "größ…");
  CHECK(fit("größer", 1) == "…");
  CHECK(fit("größer", 0).empty());
  CHECK(display_width("長い") == 4);
  CHECK(display_width("e\u0301") == 1);
  CHECK(display_width("\xFF\x80") == 2);
  CHECK(fit("長い", 4) == "長い");
  CHECK(fit("長い人", 5) == "長い…");
  CHECK(fit("長い人", 4) == "長…");
}

TEST_CASE("without UTF-8 cut text ends with three dots") {
  const test::WithLocale locale("C");
  CHECK(fit("größer", 6) == "größer");
  CHECK(fit("größer", 5) == "gr...");
  CHECK(fit("größer", 3) == "...");
  CHECK(fit("größer", 2) == "..");
  CHECK(fit("größer", 0).empty());
}

TEST_CASE("a masked address shows only its first letter and its domain") {
  CHECK(masked_address("user@mail.example") == "u***@mail.example");
  CHECK(masked_address("élan@mail.example") == "é***@mail.example");
  CHECK(masked_address("user17") == "u***");
  CHECK(masked_address("\"a@b\"@mail.example") == "\"***@mail.example");
  CHECK(masked_address("").empty() == false);
}

TEST_CASE("a table aligns by width and ends no line with spaces") {
  cmd::TextTable table({{"name"}, {"count", cmd::TextTable::Align::right}, {"note"}});
  table.add({"größe", "7", "short"});
  table.add({"a", "1,234,567", ""});
  table.add({"b"});
  CHECK(table.render(80) ==
        "name       count  note\n"
        "größe          7  short\n"
        "a      1,234,567\n"
        "b\n");
  CHECK(table.render(22) ==
        "name       count  note\n"
        "größe          7  short\n"
        "a      1,234,567\n"
        "b\n");
  cmd::TextTable plain({{""}, {""}});
  plain.add({"a", "b"});
  CHECK(plain.render(80, 2) == "  a  b\n");
}

TEST_CASE("a table that is too wide shortens its widest text, and no number") {
  const test::WithLocale locale("C");
  cmd::TextTable table({{"name"}, {"a long title", cmd::TextTable::Align::right}, {"doing"}});
  table.add({"abcdefghijklmnop", "1,234,567", "nothing at all"});
  const auto lines = table.render(39);
  CHECK(lines ==
        "name         a long title  doing\n"
        "abcdefgh...     1,234,567  nothing a...\n");
  CHECK(table.render(30) ==
        "name      a long...  doing\n"
        "abcde...  1,234,567  nothin...\n");
  CHECK(table.render(10) == table.render(29));
}

}  // namespace mailroom::test::moment_test
