#include "delivery/breaker.hpp"

#include <random>
#include <vector>

#include "support/catch.hpp"

namespace mailroom::test::breaker_test {
namespace {

using std::chrono::seconds;

constexpr WallTime start{std::chrono::hours(500'000)};
constexpr Milliseconds probe_time{30'000};

delivery::Answer outcome(delivery::Verdict kind, int code = 0) {
  delivery::Answer delivery;
  delivery.verdict = kind;
  delivery.is_excused = code == 0;
  delivery.code = code;
  delivery.reply = "reason";
  return delivery;
}

const auto down = outcome(delivery::Verdict::unavailable);

delivery::Breaker open_breaker(int failures, WallTime next_probe) {
  return {
      .failures = failures, .since = start, .opened_at = start, .next_probe = next_probe, .why = "reason"};
}

}  // namespace

TEST_CASE("the delay doubles from one second to thirty, less up to a fifth") {
  const std::vector<int> delays{1000, 2000, 4000, 8000, 16'000, 30'000, 30'000};
  for (std::size_t i = 0; i < delays.size(); ++i) {
    const auto failures = static_cast<int>(i) + 1;
    CHECK(delivery::breaker_delay(failures, 0) == Milliseconds(delays[i]));
    CHECK(delivery::breaker_delay(failures, 1) == Milliseconds(delays[i] * 4 / 5));
  }
  CHECK(delivery::breaker_delay(2'000'000'000, 0) == Milliseconds(30'000));
}

TEST_CASE("a breaker opens when the relay is unavailable") {
  const auto once = delivery::after_answer({}, down, start, start, 0);
  CHECK(once == open_breaker(1, start + seconds(1)));
  const auto twice = delivery::after_answer(once, down, start + seconds(1), start + seconds(2), 0);
  CHECK(twice.failures == 2);
  CHECK(twice.since == start);
  CHECK(twice.next_probe == start + seconds(4));
}

TEST_CASE("attempts that fail together open the breaker once") {
  const auto once = delivery::after_answer({}, down, start, start + seconds(1), 0);
  CHECK(delivery::after_answer(once, down, start, start + seconds(2), 0) == once);
}

TEST_CASE("what a delivery says about the relay") {
  const auto open = open_breaker(3, start + seconds(4));
  const auto later = start + seconds(5);
  struct BreakerRow {
    delivery::Answer delivery;
    bool closes;
  };
  const std::vector<BreakerRow> rows{
      {outcome(delivery::Verdict::accepted, 250), true}, {outcome(delivery::Verdict::deferred, 450), true},
      {outcome(delivery::Verdict::rejected, 550), true}, {outcome(delivery::Verdict::unknown), false},
      {outcome(delivery::Verdict::deferred), false},     {outcome(delivery::Verdict::rejected), false},
  };
  for (const auto& [delivery, closes] : rows) {
    INFO(static_cast<int>(delivery.verdict) << " " << delivery.code);
    const auto after = delivery::after_answer(open, delivery, later, later, 0);
    CHECK(after.is_open() == !closes);
    // A probe that says nothing does not delay the next one.
    if (!closes) CHECK(after == open_breaker(3, later));
    CHECK(delivery::after_answer({}, delivery, later, later, 0) == delivery::Breaker{});
  }
}

TEST_CASE("one mail passes an open breaker, when its time has come") {
  const auto open = open_breaker(1, start + seconds(1));
  CHECK_FALSE(delivery::let_through(open, start, probe_time).has_value());
  const auto probed = delivery::let_through(open, start + seconds(1), probe_time);
  REQUIRE(probed.has_value());
  CHECK(probed->is_open());
  CHECK_FALSE(delivery::let_through(*probed, start + seconds(30), probe_time).has_value());
  // The probe's process has died.
  CHECK(delivery::let_through(*probed, start + seconds(31), probe_time).has_value());
  CHECK(delivery::let_through(delivery::Breaker{}, start, probe_time) == delivery::Breaker{});
}

TEST_CASE("a clock that was set back does not keep the breaker open") {
  const auto open = open_breaker(1, start + std::chrono::hours(10));
  CHECK(delivery::let_through(open, start, probe_time).has_value());
  CHECK(delivery::time_to_probe(open, start) == seconds(1));
}

TEST_CASE("the time to the next probe is at least a second") {
  CHECK_FALSE(delivery::time_to_probe(delivery::Breaker{}, start).has_value());
  CHECK(delivery::time_to_probe(open_breaker(2, start + Milliseconds(1500)), start) == seconds(2));
  CHECK(delivery::time_to_probe(open_breaker(6, start + seconds(30)), start) == seconds(30));
  CHECK(delivery::time_to_probe(open_breaker(1, start), start) == seconds(1));
  CHECK(delivery::time_to_probe(open_breaker(1, start - seconds(9)), start) == seconds(1));
}

TEST_CASE("while a probe is under way, the next mail may pass soon") {
  for (int failures = 1; failures < 9; ++failures) {
    const auto failed = delivery::after_answer(open_breaker(failures, start), down, start, start, 0.5);
    const auto probed = delivery::let_through(failed, failed.next_probe, probe_time);
    REQUIRE(probed.has_value());
    CHECK(delivery::time_to_probe(failed, start) >= delivery::breaker_delay(failed.failures, 1));
    CHECK(delivery::time_to_probe(*probed, failed.next_probe) == seconds(1));
  }
}

// Mails of several senders over an hour; the relay is down for a part of it.
TEST_CASE("an outage costs one probe at a time, and ends within a delay") {
  std::mt19937 random(99);
  for (int round = 0; round < 50; ++round) {
    delivery::Breaker breaker;
    const auto down_from = start + seconds(random() % 600);
    const auto down_until = down_from + seconds(random() % 1200);
    int probes = 0;
    std::optional<WallTime> recovered;
    for (auto now = start; now < start + std::chrono::hours(1); now += Milliseconds(random() % 200)) {
      const auto passed = delivery::let_through(breaker, now, probe_time);
      if (!passed) continue;
      const bool is_down = now >= down_from && now < down_until;
      probes += is_down ? 1 : 0;
      breaker = delivery::after_answer(*passed, is_down ? down : outcome(delivery::Verdict::accepted, 250),
                                       now, now, static_cast<double>(random() % 100) / 100);
      if (!is_down && now >= down_until && !recovered) recovered = now;
    }
    INFO(round);
    REQUIRE(recovered.has_value());
    CHECK(*recovered - down_until <= Milliseconds(30'200));
    // 5 delays below 24 s, then one probe in at least 24 s.
    CHECK(probes <= 6 + (down_until - down_from) / seconds(24));
    CHECK_FALSE(breaker.is_open());
  }
}

}  // namespace mailroom::test::breaker_test
