// The estimate of how fast tokens arrive, and the limit and timeout that follow from it.

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "consumer/batcher.hpp"
#include "support/catch.hpp"

namespace mailroom::test::batch_choice_test {

using namespace std::chrono_literals;

namespace {

using Seconds = std::chrono::duration<double>;

const consumer::BatchBounds usual{
    .min_limit = 10, .max_limit = 500, .min_timeout = 50ms, .max_timeout = 5s, .line_cost = 100ms};

/// `LIMIT in TIMEOUT`, the timeout in milliseconds; `at once`.
std::string text_of(const consumer::BatchChoice& choice) {
  if (choice.timeout == 0ns) return choice.limit == usual.max_limit ? "at once" : "at once, below the limit";
  return std::to_string(choice.limit) + " in " + std::to_string(std::llround(Seconds(choice.timeout) / 1ms));
}

/// The cost of a token in seconds, if a batch is emitted `timeout` after its first token.
double cost_with_timeout(Seconds line_cost, Seconds gap, Seconds timeout) {
  return (line_cost + timeout + timeout * (timeout / gap) / 2).count() / (1 + timeout / gap);
}

/// The same if a batch is emitted with its n-th token.
double cost_with_limit(Seconds line_cost, Seconds gap, double n) {
  return line_cost.count() / n + gap.count() * (n - 1) / 2;
}

double log_uniform(double from, double to, std::mt19937_64& random) {
  const double part = static_cast<double>(random() >> 11) / 9007199254740992.0;
  return from * std::pow(to / from, part);
}

}  // namespace

TEST_CASE("limit and timeout follow from the gap, the bounds and the cost of a line") {
  const auto with = [](auto change) {
    auto bounds = usual;
    change(bounds);
    return bounds;
  };
  const auto no_least = with([](auto& b) { b.min_limit = 1, b.min_timeout = 0ms; });
  const auto dear = with([](auto& b) { b.min_limit = 1, b.line_cost = 1min; });
  const auto fixed_limit = with([](auto& b) { b.min_limit = 500; });
  const auto cheap = with([](auto& b) { b.line_cost = 1ms; });
  struct Case {
    const char* name;
    consumer::BatchBounds bounds;
    Seconds gap;
    std::string choice;
  };
  const std::vector<Case> cases{
      {"no second token within the longest timeout", usual, 5s, "at once"},
      {"… even if a line is dear", dear, 5s, "at once"},
      {"a second token costs more delay than its line", usual, 100ms, "at once"},
      {"… a little less", no_least, 99ms, "2 in 297"},
      {"a second token within the longest timeout, and lines are dear", dear, 4900ms, "5 in 5000"},
      {"the longest timeout ends a line that could have more tokens", dear, 1s, "11 in 5000"},
      {"three tokens are best", no_least, 25ms, "3 in 150"},
      {"… but not a line of ten, nor the least timeout", usual, 90ms, "at once"},
      {"… so the timeout ends the line", usual, 20ms, "10 in 50"},
      {"the limit ends the line", usual, 1ms, "14 in 50"},
      {"a faster rate, a higher limit", usual, 100us, "45 in 50"},
      {"the limit is the upper one, and the timeout the least", usual, 100ns, "500 in 50"},
      {"tokens that arrive together", usual, 0s, "500 in 50"},
      {"a fixed limit, so the timeout ends the line", fixed_limit, 1ms, "500 in 50"},
      {"… and may take longer if the line is dearer",
       with([](auto& b) { b.min_limit = 500, b.line_cost = 10s; }), 10ms, "500 in 437"},
      {"a line of ten costs more than ten lines", cheap, 1ms, "at once"},
      {"no bounds", no_least, 1us, "447 in 1"},
  };
  for (const auto& [name, bounds, gap, choice] : cases) {
    INFO(name);
    CHECK(text_of(consumer::choose_batch(bounds, gap)) == choice);
  }
}

TEST_CASE("without bounds the limit is the one of the least cost, and two tokens have to be worth it") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const Milliseconds line_cost(std::llround(log_uniform(1, 1e5, random)));
    const Seconds gap(log_uniform(1e-5, 10, random));
    CAPTURE(i, line_cost.count(), gap.count());
    const consumer::BatchBounds bounds{
        .min_limit = 1, .max_limit = 10'000, .min_timeout = 0ms, .max_timeout = 24h, .line_cost = line_cost};
    const auto choice = consumer::choose_batch(bounds, gap);
    if (choice.timeout == 0ns) {
      CHECK(cost_with_limit(line_cost, gap, 2) >= cost_with_limit(line_cost, gap, 1));
      continue;
    }
    const double cost = cost_with_limit(line_cost, gap, choice.limit);
    CHECK(cost <= cost_with_limit(line_cost, gap, choice.limit - 1));
    if (choice.limit < bounds.max_limit) CHECK(cost <= cost_with_limit(line_cost, gap, choice.limit + 1));
    // The timeout leaves a line the time to fill.
    CHECK(Seconds(choice.timeout) > (choice.limit - 1) * gap);
  }
}

TEST_CASE("with a limit out of reach the timeout is the one of the least cost within the bounds") {
  std::mt19937_64 random(2);
  int waits = 0;
  for (int i = 0; i < 2000; ++i) {
    const Milliseconds line_cost(std::llround(log_uniform(10, 1e4, random)));
    const Seconds gap(log_uniform(1e-3, 1, random));
    CAPTURE(i, line_cost.count(), gap.count());
    const consumer::BatchBounds bounds{.min_limit = 10'000,
                                       .max_limit = 10'000,
                                       .min_timeout = 20ms,
                                       .max_timeout = 2s,
                                       .line_cost = line_cost};
    const auto choice = consumer::choose_batch(bounds, gap);
    const double cost = cost_with_timeout(line_cost, gap, choice.timeout);
    double least = cost_with_timeout(line_cost, gap, 0s);
    for (auto timeout = bounds.min_timeout; timeout <= bounds.max_timeout; timeout += 5ms)
      least = std::min(least, cost_with_timeout(line_cost, gap, timeout));
    CHECK(cost <= least * 1.0001);
    if (choice.timeout == 0ns) continue;
    ++waits;
    CHECK(choice.timeout >= bounds.min_timeout);
    CHECK(choice.timeout <= bounds.max_timeout);
  }
  CHECK(waits > 500);
}

TEST_CASE("whatever the bounds, the choice is within them, and slower tokens never have a higher limit") {
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    consumer::BatchBounds bounds;
    bounds.min_limit = static_cast<int>(log_uniform(1, 10'000, random));
    bounds.max_limit = static_cast<int>(log_uniform(bounds.min_limit, 10'000, random));
    bounds.min_timeout = Milliseconds(std::llround(log_uniform(1, 1e6, random)) - 1);
    bounds.max_timeout = bounds.min_timeout + Milliseconds(std::llround(log_uniform(1, 1e6, random)) - 1);
    bounds.line_cost = Milliseconds(std::llround(log_uniform(1, 1e6, random)));
    int limit = bounds.max_limit;
    for (double gap = 1e-7; gap < 1e4; gap *= 3) {
      CAPTURE(i, gap);
      const auto choice = consumer::choose_batch(bounds, Seconds(gap));
      if (choice.timeout == 0ns && choice.limit == bounds.max_limit) continue;
      CHECK(choice.limit >= bounds.min_limit);
      CHECK(choice.limit <= limit);
      CHECK(choice.timeout >= bounds.min_timeout);
      CHECK(choice.timeout <= bounds.max_timeout);
      limit = choice.limit;
    }
  }
}

namespace {

TimePoint at(double seconds) {
  return TimePoint(1h) + std::chrono::duration_cast<TimePoint::duration>(Seconds(seconds));
}

/// Tokens come alone, `gap` seconds apart.
void arrive(consumer::ArrivalGap& estimate, double& now, int tokens, double gap) {
  for (; tokens > 0; --tokens) {
    now += gap;
    estimate.arrived(1, at(now));
  }
}

}  // namespace

TEST_CASE("the estimate starts with the longest gap, and follows the rate within a dozen tokens") {
  consumer::ArrivalGap estimate(10s);
  double now = 0;
  estimate.start(at(now));
  CHECK(estimate.mean() == 10s);
  arrive(estimate, now, 12, 0.001);
  CHECK(estimate.mean() < 400ms);
  arrive(estimate, now, 12, 0.001);
  CHECK(estimate.mean() < 15ms);
  arrive(estimate, now, 12, 1);
  CHECK(estimate.mean() > 900ms);
  CHECK(estimate.mean() < 1s);
}

TEST_CASE("tokens that are seen together count each, and those before the start do not count") {
  consumer::ArrivalGap together(10s);
  consumer::ArrivalGap alone(10s);
  double now = 0;
  together.start(at(0));
  alone.start(at(0));
  arrive(alone, now, 200, 0.01);
  for (int second = 1; second <= 3; ++second) {
    together.arrived(0, at(second - 0.5));
    together.arrived(100, at(second));
  }
  CHECK(together.mean() / alone.mean() == Approx(1).epsilon(0.05));
  const auto before = together.mean();
  together.start(at(9));
  together.arrived(1, at(9.001));
  CHECK(together.mean() < before);
}

TEST_CASE("after a long pause the next token counts as lone, however fast the tokens before it were") {
  consumer::ArrivalGap estimate(1s);
  double now = 0;
  estimate.start(at(now));
  arrive(estimate, now, 1000, 0.001);
  CHECK(estimate.mean() < 2ms);
  arrive(estimate, now, 1, 3600);
  CHECK(estimate.mean() > 990ms);
  CHECK(estimate.mean() <= 1s);
}

TEST_CASE("the estimate of random arrivals is near their mean gap, and never beyond the longest gap") {
  std::mt19937_64 random(4);
  for (int i = 0; i < 200; ++i) {
    const double gap = log_uniform(1e-4, 0.5, random);
    CAPTURE(i, gap);
    consumer::ArrivalGap estimate(5s);
    double now = 0;
    double sum = 0;
    estimate.start(at(now));
    arrive(estimate, now, 50, gap);
    constexpr int tokens = 2000;
    for (int token = 0; token < tokens; ++token) {
      now += -std::log(1 - static_cast<double>(random() >> 11) / 9007199254740992.0) * gap;
      estimate.arrived(1, at(now));
      sum += estimate.mean().count();
      REQUIRE(estimate.mean() > 0s);
      REQUIRE(estimate.mean() <= 5s);
    }
    CHECK(sum / tokens == Approx(gap).epsilon(0.15));
  }
}

TEST_CASE("a clock that stands still, or an estimate without a longest gap, does no harm") {
  consumer::ArrivalGap still(1s);
  still.start(at(0));
  still.arrived(3, at(0));
  CHECK(still.mean() == 500ms);
  consumer::ArrivalGap none;
  none.arrived(5, at(1));
  CHECK(none.mean() == 0s);
}

}  // namespace mailroom::test::batch_choice_test
