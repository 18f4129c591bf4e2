#include <sstream>

#include "process/retry.hpp"
#include "support/catch.hpp"
#include "support/text_lines.hpp"

namespace mailroom::test::retry_log_test {

using namespace std::chrono_literals;

namespace {

/// Attempts that fail every second.
struct Trial {
  std::ostringstream text;
  Log log{{.level = LogLevel::info, .format = LogFormat::logfmt}, text};
  process::RetryLog retries{log};
  TimePoint now{1h};

  void fail_for(std::chrono::seconds time) {
    for (const auto until = now + time; now < until; now += 1s)
      retries.failed("connection lost", "no route", now);
  }
  /// The logged lines, without times.
  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    for (const auto& line : lines_of(text.str()))
      all.push_back(line.substr(line.find("msg=")));
    return all;
  }
};

}  // namespace

TEST_CASE("the first failed attempt is logged, and later ones less and less often") {
  Trial trial;
  trial.fail_for(100s);
  CHECK(trial.lines() == std::vector<std::string>{"msg=\"connection lost\" reason=\"no route\"",
                                                  "msg=\"still trying\" for=10s reason=\"no route\"",
                                                  "msg=\"still trying\" for=20s reason=\"no route\"",
                                                  "msg=\"still trying\" for=40s reason=\"no route\"",
                                                  "msg=\"still trying\" for=1m20s reason=\"no route\""});
  trial.fail_for(std::chrono::hours(2));
  CHECK(trial.lines().size() < 25);
  CHECK(trial.lines().back().find("for=2h") != std::string::npos);
}

TEST_CASE("a success resets the log, and a connection that is lost before use does not") {
  Trial trial;
  CHECK(trial.retries.is_news());
  CHECK_FALSE(trial.retries.failing_for(trial.now));
  for (int round = 0; round < 5; ++round) {
    trial.fail_for(1s);
    // A connection was made, and was lost before it was used.
    CHECK(trial.retries.is_news() == (round == 0));
  }
  CHECK(trial.lines().size() == 1);
  CHECK(trial.retries.failing_for(trial.now) == 5s);
  trial.retries.worked();
  CHECK_FALSE(trial.retries.failing_for(trial.now));
  trial.fail_for(1s);
  CHECK(trial.retries.is_news());
  CHECK(trial.lines().size() == 2);
}

}  // namespace mailroom::test::retry_log_test
