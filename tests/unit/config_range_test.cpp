// Settings that may be ranges: collect.batch_limit and collect.batch_timeout.

#include <string>
#include <vector>

#include "support/refused_settings.hpp"

namespace mailroom::test::config_range_test {
TEST_CASE("limit and timeout may be ranges, from every origin") {
  const test::WorkingDirectory directory;
  directory.write("mailroom.yaml", "collect: {batch_limit: 10..500, batch_timeout: 50ms..5s}");
  auto settings = config::load_settings({}, {});
  CHECK(settings.collect.batch_limit.min == 10);
  CHECK(settings.collect.batch_limit.max == 500);
  CHECK(settings.collect.batch_timeout.min == Milliseconds(50));
  CHECK(settings.collect.batch_timeout.max == Milliseconds(5000));
  CHECK(config::setting_of(settings, "collect.batch_limit").text == "10..500");
  settings = config::load_settings({std::nullopt, {{"collect.batch_timeout", "0..250", "--batch-timeout"}}},
                                   {{"MAILROOM_BATCH_LIMIT", "1..10000"}});
  CHECK(settings.collect.batch_limit.min == 1);
  CHECK(settings.collect.batch_limit.max == 10'000);
  CHECK(settings.collect.batch_timeout.min == Milliseconds(0));
  CHECK(settings.collect.batch_timeout.max == Milliseconds(250));
  // Both ends are the same: a fixed value, which several lines per claim do not exclude.
  settings = config::load_settings({}, {{"MAILROOM_BATCH_LIMIT", "7..7"},
                                        {"MAILROOM_BATCH_TIMEOUT", "0..1d"},
                                        {"MAILROOM_LINES_PER_CLAIM", "3"}});
  CHECK(settings.collect.batch_limit.is_fixed());
  CHECK_FALSE(settings.collect.batch_timeout.is_fixed());
  CHECK(settings.collect.lines_per_claim == 3);
}

TEST_CASE("a size has the units of PostgreSQL, or none") {
  const WorkingDirectory directory;
  for (const auto& [text, bytes] : std::vector<std::pair<std::string, int>>{
           {"64kB", 65'536}, {"65536", 65'536}, {"10MB", 10'485'760}, {"100MB", 104'857'600}})
    CHECK(config::load_settings({}, {{"MAILROOM_SEND_MAX_SIZE", text}}).send.max_size == bytes);
  for (const std::string text : {"63kB", "101MB", "10", "10mb", "10 MB", "1GB", "-1MB", "MB", "1.5MB",
                                 "99999999999MB", "2147483647MB", "10MiB"})
    check_refused(
        {}, {{"MAILROOM_SEND_MAX_SIZE", text}},
        "send.max_size is " + text + " (from MAILROOM_SEND_MAX_SIZE), and must be a size from 64kB to 100MB",
        "write 500kB or 10MB; a bare number is bytes, and a kB has 1024");
}

TEST_CASE("a range that is no range is refused with what it must be") {
  const WorkingDirectory directory;
  const std::string counts = ", and must be a range of two whole numbers from 1 to 10000";
  const std::string durations =
      " (from MAILROOM_BATCH_TIMEOUT), and must be a range of two durations from 0s to 1d";
  for (const std::string text : {"..", "10..", "..500", "0..5", "10..abc", "10..5s", "10..10001", "10...500",
                                 "1..2..3", "10 .. 500", "-5..5", "10..+500"}) {
    check_refused({std::nullopt, {{"collect.batch_limit", text, "--batch-limit"}}}, {},
                  "--batch-limit is '" + text + "'" + counts, "for example 10..500");
  }
  for (const std::string text : {"..", "50ms..", "..5s", "50ms..2d", "50ms..5x", "50ms...5s", "1s..2s..3s"}) {
    check_refused({}, {{"MAILROOM_BATCH_TIMEOUT", text}}, "collect.batch_timeout is " + text + durations,
                  "for example 50ms..5s");
  }
  const std::string order = "and must be a range from the smaller value to the larger";
  const std::string units = "and must be a range with a unit at both ends";
  const std::string hint = "a bare number is milliseconds: write ";
  check_all_refused({
      {"collect: {batch_limit: 500..10}",
       {},
       {},
       "collect.batch_limit is 500..10 (from mailroom.yaml:1:11), " + order,
       "write 10..500"},
      {"",
       {},
       {{"collect.batch_timeout", "5s..50ms", "--batch-timeout"}},
       "--batch-timeout is '5s..50ms', " + order,
       "write 50ms..5s"},
      {"",
       {},
       {{"collect.batch_timeout", "50..5s", "--batch-timeout"}},
       "--batch-timeout is '50..5s', " + units,
       hint + "50ms..5s"},
      {"",
       {},
       {{"collect.batch_timeout", "1s..5000", "--batch-timeout"}},
       "--batch-timeout is '1s..5000', " + units,
       hint + "1s..5000ms"},
  });
}

TEST_CASE("several lines per claim exclude a range of limits, wherever both come from") {
  const std::string hint =
      "a range lets lines grow with the load; for many short lines per claim, give one batch_limit";
  check_all_refused({
      {"collect: {batch_limit: 10..500, lines_per_claim: 3}",
       {},
       {},
       "collect.lines_per_claim is 3 (from mailroom.yaml:1:33), and must be 1 if collect.batch_limit is a range",
       hint},
      {"",
       {{"MAILROOM_BATCH_LIMIT", "10..500"}},
       {{"collect.lines_per_claim", "3", "--lines-per-claim"}},
       "--lines-per-claim is '3', and must be 1 if collect.batch_limit is a range",
       hint},
  });
}

}  // namespace mailroom::test::config_range_test
