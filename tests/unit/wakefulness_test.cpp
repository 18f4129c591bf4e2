#include "queue/wakefulness.hpp"

#include <vector>

#include "support/catch.hpp"

using namespace mailroom;
using namespace std::chrono_literals;
using Advice = Wakefulness::Advice;

namespace {

const TimePoint start{std::chrono::hours(1)};

/// Looks every 10 ms from `from` to `to`, while tokens come at `rate` a second; what was advised, without
/// the nothings, and obeyed.
std::vector<Advice> look_on(Wakefulness& wakefulness, std::int64_t& last, std::int64_t rate, TimePoint from,
                            TimePoint to) {
  std::vector<Advice> heard;
  for (auto now = from; now < to; now += 10ms) {
    last += rate / 100;
    const auto advice = wakefulness.looked({.last = last}, now);
    if (advice == Advice::none) continue;
    heard.push_back(advice);
    if (advice == Advice::stay_awake) wakefulness.stays_awake(now);
    if (advice == Advice::fall_asleep) wakefulness.settle(now);
  }
  return heard;
}

Wakefulness with_timeout(Milliseconds batch_timeout) {
  return Wakefulness({.batch_timeout = batch_timeout, .poll_interval = 1s});
}

}  // namespace

TEST_CASE("a collector stays awake above 500 tokens a second, and falls asleep below 250") {
  auto wakefulness = with_timeout(5s);
  std::int64_t last = 1;
  CHECK(look_on(wakefulness, last, 400, start, start + 1s).empty());
  CHECK(look_on(wakefulness, last, 600, start + 1s, start + 2s) == std::vector{Advice::stay_awake});
  CHECK(look_on(wakefulness, last, 300, start + 2s, start + 3s).empty());
  CHECK(look_on(wakefulness, last, 200, start + 3s, start + 4s) == std::vector{Advice::fall_asleep});
  CHECK(wakefulness.is_settling());
}

TEST_CASE("a collector that finds another awake asks again once a measurement") {
  auto wakefulness = with_timeout(5s);
  int attempts = 0;
  for (int ms = 0; ms < 1000; ++ms)
    attempts += wakefulness.looked({.last = 1 + ms}, start + Milliseconds(ms)) == Advice::stay_awake ? 1 : 0;
  CHECK(attempts >= 40);
  CHECK(attempts <= 50);
}

TEST_CASE("a burst after silence is measured by itself") {
  auto wakefulness = with_timeout(5s);
  CHECK(wakefulness.looked({.last = 1}, start) == Advice::none);
  CHECK(wakefulness.looked({.last = 1'000'000}, start + 1h) == Advice::none);
  CHECK(wakefulness.looked({.last = 1'000'009}, start + 1h + 20ms) == Advice::none);
  CHECK(wakefulness.looked({.last = 1'000'019}, start + 1h + 40ms) == Advice::stay_awake);
}

TEST_CASE("a look that saw nothing of the queue measures nothing") {
  auto wakefulness = with_timeout(5s);
  std::int64_t last = 1;
  look_on(wakefulness, last, 1000, start, start + 1s);
  REQUIRE(wakefulness.is_awake());
  CHECK(wakefulness.looked({.last = 0}, start + 1s + 30ms) == Advice::none);
  CHECK(wakefulness.is_awake());
}

TEST_CASE("where inserts always notify nobody stays awake, and who is falls asleep") {
  auto wakefulness = with_timeout(5s);
  std::int64_t last = 1;
  look_on(wakefulness, last, 1000, start, start + 1s);
  REQUIRE(wakefulness.is_awake());
  wakefulness.configure({.allowed = false, .batch_timeout = 5s, .poll_interval = 1s});
  CHECK(look_on(wakefulness, last, 1000, start + 1s, start + 2s) == std::vector{Advice::fall_asleep});
}

TEST_CASE("awake it looks after half the batch timeout, from half a millisecond to five") {
  for (const auto& [timeout, pause] :
       std::vector<std::pair<Milliseconds, std::chrono::microseconds>>{{0ms, 500us}, {4ms, 2ms}, {5s, 5ms}}) {
    auto wakefulness = with_timeout(timeout);
    wakefulness.stays_awake(start);
    CHECK(wakefulness.next_look() == start + pause);
  }
}

TEST_CASE(
    "settling, it looks at once and then as late again as it has waited already, up to the poll interval") {
  auto wakefulness = with_timeout(5s);
  CHECK(wakefulness.next_look() == TimePoint::max());
  wakefulness.settle(start);
  CHECK(wakefulness.next_look() == start);
  std::vector<Milliseconds> waits;
  auto now = start + 1ms;
  for (int looks = 0; looks < 12; ++looks) {
    wakefulness.looked({.last = 1}, now);
    waits.push_back(std::chrono::duration_cast<Milliseconds>(wakefulness.next_look() - now));
    now = wakefulness.next_look();
  }
  CHECK(waits == std::vector{1ms, 2ms, 4ms, 8ms, 16ms, 32ms, 64ms, 128ms, 256ms, 512ms, 1000ms, 1000ms});
  wakefulness.settled();
  CHECK(wakefulness.next_look() == TimePoint::max());
}
