#include <fcntl.h>
#include <random>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

#include "base/clock.hpp"
#include "base/encoded_text.hpp"
#include "base/json.hpp"
#include "base/log.hpp"
#include "base/output.hpp"
#include "base/pattern.hpp"
#include "base/printable.hpp"
#include "base/secret_text.hpp"
#include "base/text.hpp"
#include "base/wording.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

namespace mailroom::test::base_test {

using namespace std::chrono_literals;

TEST_CASE("the tag of a mail has letters, digits and what the provider takes") {
  CHECK(tag_text("main.queue@eu-1", "_-.@", 256) == "main.queue@eu-1");
  CHECK(tag_text("main.queue@eu-1", "_-", 256) == "main_queue_eu-1");
  CHECK(tag_text("Grüße", "_-", 256) == "Gr____e");
  CHECK(tag_text("abcdef", "", 3) == "abc");
}

TEST_CASE("a word is found in a list, and a part in a text of any case") {
  CHECK(is_one_of("b", {"a", "b"}));
  CHECK_FALSE(is_one_of("B", {"a", "b"}));
  CHECK_FALSE(is_one_of("", {}));
  CHECK(holds_in_any_case("The API Key is invalid", "api key is invalid"));
  CHECK_FALSE(holds_in_any_case("The key is invalid", "api key"));
}

TEST_CASE("the text of a member is read, and of what has no such text it is empty") {
  CHECK(text_at(parse_json(R"({"name": "Ann"})"), "name") == "Ann");
  for (const auto* other :
       {R"({"name": 7})", R"({"Name": "Ann"})", R"({"name": null})", R"(["name"])", "null", "7"})
    CHECK(text_at(parse_json(other), "name").empty());
  CHECK(text_at(try_parse_json("no JSON"), "name").empty());
}

TEST_CASE("a duration is parsed") {
  const std::vector<std::pair<std::string, Milliseconds>> cases{
      {"0", 0ms},
      {"5000", 5s},
      {"250ms", 250ms},
      {"5s", 5s},
      {"4m30s", 270s},
      {"1h", 1h},
      {"30d", 720h},
      {"1d2h3m4s5ms", 93784005ms},
      {"90m", 90min},
      {"0s", 0ms},
      {"007s", 7s},
      {"36500d", 876000h},
      {"1d1ms", 86400001ms},
  };
  for (const auto& [text, expected] : cases) {
    INFO(text);
    CHECK(parse_duration(text) == expected);
  }
}

TEST_CASE("text that is no duration is refused") {
  for (const std::string text : {"",
                                 " ",
                                 "s",
                                 "5 s",
                                 " 5s",
                                 "5s ",
                                 "-5s",
                                 "+5s",
                                 "1.5s",
                                 "5S",
                                 "5sec",
                                 "5s5",
                                 "30s4m",
                                 "5s5s",
                                 "ms",
                                 "1h-5m",
                                 "36501d",
                                 "36500d1ms",
                                 "3153600000001",
                                 "99999999999999999999",
                                 "99999999999d",
                                 "5\xc2\xb5s"}) {
    INFO(text);
    CHECK_FALSE(parse_duration(text));
  }
}

TEST_CASE("a formatted duration parses back to the same value") {
  const std::vector<std::pair<Milliseconds, std::string>> cases{
      {0ms, "0s"}, {270s, "4m30s"}, {5s, "5s"}, {250ms, "250ms"}, {24h, "1d"}, {86400001ms, "1d1ms"}};
  for (const auto& [duration, text] : cases)
    CHECK(format_duration(duration) == text);
  std::mt19937_64 random(7);
  for (int round = 0; round < 5000; ++round) {
    // Random values of every magnitude up to about 35 years.
    const Milliseconds duration(static_cast<std::int64_t>(random() >> (24 + random() % 40)));
    INFO(duration.count());
    REQUIRE(parse_duration(format_duration(duration)) == duration);
  }
}

TEST_CASE("text is printable when it is well-formed UTF-8 without control characters") {
  for (const std::string text :
       {"", "a b~", "\xc3\xa9", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
        "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    INFO(text);
    CHECK(is_printable(text));
  }
  CHECK_FALSE(is_printable(std::string("a\0b", 3)));
  for (const std::string text : {"\n",
                                 "a\rb",
                                 "\t",
                                 "\x1b[0m",
                                 "\x1f",
                                 "\x7f",  // control characters
                                 "\x80",
                                 "\xbf",
                                 "\xc3",
                                 "\xe2\x82",
                                 "\xf0\x9f\x98",
                                 "\xc3(",
                                 "\xe2(\xa1",  // cut short or lost
                                 "\xc0\x80",
                                 "\xc1\xbf",
                                 "\xe0\x9f\xbf",
                                 "\xf0\x8f\xbf\xbf",  // overlong
                                 "\xed\xa0\x80",
                                 "\xed\xbf\xbf",  // surrogates
                                 "\xf4\x90\x80\x80",
                                 "\xf5\x80\x80\x80",
                                 "\xff"}) {  // beyond U+10FFFF
    INFO(text);
    CHECK_FALSE(is_printable(text));
  }
}

TEST_CASE("the nearest word is found, and none when all are too different") {
  const std::vector<std::string> words{"collect", "verify", "status", "suspend"};
  const std::vector<std::pair<std::string, std::string>> cases{
      {"colect", "collect"},  {"verfiy", "verify"}, {"state", "status"},
      {"suspend", "suspend"}, {"xyzzy", ""},        {"", ""},
  };
  for (const auto& [typed, meant] : cases)
    CHECK(nearest_word(typed, words) == meant);
  CHECK(nearest_word("verify", {}).empty());
}

TEST_CASE("numbers are grouped by thousands") {
  const std::vector<std::pair<std::int64_t, std::string>> cases{{0, "0"},
                                                                {7, "7"},
                                                                {999, "999"},
                                                                {1000, "1,000"},
                                                                {123456, "123,456"},
                                                                {-999, "-999"},
                                                                {-1000, "-1,000"},
                                                                {-123456, "-123,456"},
                                                                {1234567, "1,234,567"},
                                                                {INT64_MIN, "-9,223,372,036,854,775,808"}};
  for (const auto& [number, text] : cases)
    CHECK(with_thousands(number) == text);
}

namespace {

std::string logged(LogFormat format, const std::string& message, Fields fields) {
  std::ostringstream stream;
  Log log({LogLevel::info, format, true}, stream);
  log.warn(message, fields);
  return stream.str();
}

/// The line without its time, which must be UTC with milliseconds.
std::string without_time(const std::string& line) {
  static const Pattern time(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)");
  REQUIRE(time.occurs_in(line));
  return time.replaced(line, "TIME");
}

}  // namespace

TEST_CASE("a log line has its message and fields in every format") {
  const Fields fields{{"batch", 12}, {"queue", "a b"}, {"ok", true}, {"empty", ""}};
  CHECK(without_time(logged(LogFormat::text, "batch written", fields)) ==
        "TIME warn  batch written batch=12 queue=\"a b\" ok=true empty=\"\"\n");
  CHECK(without_time(logged(LogFormat::logfmt, "batch written", fields)) ==
        "time=TIME level=warn msg=\"batch written\" batch=12 queue=\"a b\" ok=true empty=\"\"\n");
  CHECK(
      without_time(logged(LogFormat::json, "batch written", fields)) ==
      R"({"time":"TIME","level":"warn","message":"batch written","batch":12,"queue":"a b","ok":"true","empty":""})"
      "\n");
}

TEST_CASE("a log line is one line and valid JSON whatever text it contains") {
  const std::string hostile = "a\"b\\c\n{}\xff %v";
  const auto line = logged(LogFormat::json, hostile, {{"value", hostile}});
  CHECK(std::count(line.begin(), line.end(), '\n') == 1);
  const auto object = parse_json(line);
  CHECK(object.at("message") == "a\"b\\c\n{}\xef\xbf\xbd %v");
  CHECK(object.at("value") == object.at("message"));
  const auto logfmt = logged(LogFormat::logfmt, hostile, {{"value", hostile}});
  CHECK(std::count(logfmt.begin(), logfmt.end(), '\n') == 1);
}

TEST_CASE("lines below the log level are not written") {
  std::ostringstream stream;
  Log log({LogLevel::warn, LogFormat::text, false}, stream);
  log.debug("no");
  log.info("no");
  CHECK(stream.str().empty());
  log.error("yes");
  CHECK(without_time(stream.str()) == "TIME error yes\n");
}

namespace {

bool is_within_line(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags);
  REQUIRE(fd >= 0);
  const bool within = Output(fd).is_within_line();
  close(fd);
  return within;
}

}  // namespace

TEST_CASE("an output is within a line when the last byte is no newline") {
  const test::TemporaryDirectory directory;
  const auto cut = directory.write("cut", "one\ntw");
  const auto whole = directory.write("whole", "one\n");
  const auto empty = directory.write("empty", "");
  CHECK(is_within_line(cut, O_WRONLY | O_APPEND));
  CHECK_FALSE(is_within_line(whole, O_WRONLY | O_APPEND));
  CHECK_FALSE(is_within_line(empty, O_WRONLY | O_APPEND));
  // Without O_APPEND the next byte is written at the position, which is the start.
  CHECK_FALSE(is_within_line(cut, O_WRONLY));
  CHECK_FALSE(is_within_line("/dev/null", O_WRONLY));
}

TEST_CASE("an output follows its own position, and a pipe is never within a line") {
  const test::TemporaryDirectory directory;
  const int fd = open(directory.write("file", "").c_str(), O_WRONLY);
  REQUIRE(fd >= 0);
  Output output(fd);
  output.write("half");
  CHECK(output.is_within_line());
  output.write(" a line\n");
  CHECK_FALSE(output.is_within_line());
  close(fd);
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  Output(ends[1]).write("half");
  CHECK_FALSE(Output(ends[1]).is_within_line());
  close(ends[0]);
  close(ends[1]);
}

TEST_CASE("possible secrets are removed from text that repeats an argument") {
  const std::string token =
      "RYrcmzHNOU7EKw_muDzbiK_AIE0Gv4UT1UF4zvJQKBMhH5sC2b87JqFU0S9PrEqjPVH1-ZJMwX17p37Wb5Y8WQ";
  CHECK(without_secrets("there is no command '" + token + "'") == "there is no command '***'");
  CHECK(without_secrets("login:" + token + ",1") == "login:***,1");
  CHECK(without_secrets("--" + token) == "***");
  CHECK(without_secrets(token.substr(0, 43)) == "***");
  CHECK(without_secrets(token.substr(0, 42)) == token.substr(0, 42));
  CHECK(without_secrets("\\x" + std::string(32, '0') + std::string(32, 'e')) == "\\***");
  CHECK(without_secrets("key " + std::string(32, '0') + std::string(32, 'e')) == "key ***");
  const std::string host = "mailroom-collector-production-europe-west-7d9f8b6c5d-x2x4z";
  CHECK(without_secrets(host) == host);
  CHECK(without_secrets("").empty());
}

}  // namespace mailroom::test::base_test
