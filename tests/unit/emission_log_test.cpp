#include "consumer/emission_log.hpp"

#include <sstream>

#include "support/catch.hpp"
#include "support/text_lines.hpp"

namespace mailroom::test::emission_log_test {

using namespace std::chrono_literals;

namespace {

struct Trial {
  std::ostringstream text;
  Log log{{.level = LogLevel::info, .format = LogFormat::logfmt}, text};
  consumer::EmissionLog emitted{log};
  TimePoint now{1h};

  /// The logged lines, without times.
  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    for (const auto& line : lines_of(text.str()))
      all.push_back(line.substr(line.find("level=") + 6));
    return all;
  }
  void batch(int tokens, consumer::EmissionLog::Loop loop) {
    emitted.finished({.lease = {}, .counts = {.emitted = tokens}}, now);
    emitted.write_if_due(now, loop);
  }
  std::string line_of(const claim::Receipt& receipt) {
    emitted.finished(receipt, now);
    emitted.write(now);
    return lines().back();
  }
};

claim::Receipt with_outcomes(const std::vector<fate::Outcome>& states, claim::BatchCounts counts) {
  claim::Receipt receipt{
      .lease = {}, .counts = std::move(counts), .outcomes = std::vector<claim::TokenOutcome>{}};
  for (const auto state : states)
    receipt.outcomes->push_back({.state = state});
  return receipt;
}

}  // namespace

TEST_CASE("what is emitted after a silence is logged at once, and then once a minute") {
  Trial trial;
  trial.batch(3, consumer::EmissionLog::Loop::idle);
  CHECK(trial.lines() == std::vector<std::string>{"info msg=emitted batches=1 tokens=3 skipped=0"});
  CHECK(trial.emitted.due(consumer::EmissionLog::Loop::idle) == TimePoint::max());
  for (int i = 0; i < 59; ++i) {
    trial.now += 1s;
    trial.batch(1, consumer::EmissionLog::Loop::idle);
  }
  CHECK(trial.lines().size() == 1);
  CHECK(trial.emitted.due(consumer::EmissionLog::Loop::idle) == trial.now + 1s);
  trial.now += 1s;
  trial.batch(1, consumer::EmissionLog::Loop::idle);
  CHECK(trial.lines().back() == "info msg=emitted batches=60 tokens=60 skipped=0");
}

TEST_CASE("under load a line a minute is logged, and the rest at the end") {
  Trial trial;
  for (int i = 0; i < 600; ++i) {
    trial.batch(10, consumer::EmissionLog::Loop::busy);
    trial.now += 1s;
  }
  CHECK(trial.lines().size() == 9);
  CHECK(trial.lines().front() == "info msg=emitted batches=61 tokens=610 skipped=0");
  trial.emitted.write(trial.now);
  trial.emitted.write(trial.now);
  CHECK(trial.lines().size() == 10);
}

TEST_CASE("the line says why tokens were not emitted, and is a warning if they expired") {
  Trial trial;
  trial.emitted.skipped(0, 0, trial.now);
  CHECK(trial.emitted.due(consumer::EmissionLog::Loop::idle) == TimePoint::max());
  trial.emitted.skipped(50, 48, trial.now);
  CHECK(trial.line_of({.lease = {}, .counts = {.emitted = 5, .wrong_status = 1, .invalid = 3}}) ==
        "warn msg=emitted batches=1 tokens=5 skipped=54 expired=48 consumed=2 wrong_status=1 invalid=3");
  using enum fate::Outcome;
  CHECK(trial.line_of(with_outcomes({accepted, deferred, deferred, rejected, unknown}, {.emitted = 1})) ==
        "info msg=emitted batches=1 tokens=1 skipped=0 deferred=2 rejected=1 unknown=1");
  // One that the consumer skipped has an outcome too.
  CHECK(trial.line_of(with_outcomes({expired, cancelled}, {.expired = 1})) ==
        "warn msg=emitted batches=0 tokens=0 skipped=1 expired=1 cancelled=1");
}

}  // namespace mailroom::test::emission_log_test
