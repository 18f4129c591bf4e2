#include <vector>

#include "consumer/waker.hpp"
#include "support/catch.hpp"

namespace mailroom::test::polling_state_test {

using namespace std::chrono_literals;
using Advice = consumer::PollingState::Advice;

namespace {

const TimePoint start{std::chrono::hours(1)};

/// Polls every 10 ms from `from` to `to`, while tokens arrive at `rate` per second. Follows each advice, and
/// returns every advice but none.
std::vector<Advice> poll_on(consumer::PollingState& polling_state, std::int64_t& last, std::int64_t rate,
                            TimePoint from, TimePoint to) {
  std::vector<Advice> heard;
  for (auto now = from; now < to; now += 10ms) {
    last += rate / 100;
    const auto advice = polling_state.polled({.last = last}, now);
    if (advice == Advice::none) continue;
    heard.push_back(advice);
    if (advice == Advice::stay_polling) polling_state.stays_polling(now);
    if (advice == Advice::start_listening) polling_state.start_draining(now);
  }
  return heard;
}

consumer::PollingState with_timeout(Milliseconds batch_timeout) {
  return consumer::PollingState({.batch_timeout = batch_timeout, .poll_interval = 1s});
}

}  // namespace

TEST_CASE("a collector keeps polling above 500 tokens a second, and starts to listen below 250") {
  auto polling_state = with_timeout(5s);
  std::int64_t last = 1;
  CHECK(poll_on(polling_state, last, 400, start, start + 1s).empty());
  CHECK(poll_on(polling_state, last, 600, start + 1s, start + 2s) == std::vector{Advice::stay_polling});
  CHECK(poll_on(polling_state, last, 300, start + 2s, start + 3s).empty());
  CHECK(poll_on(polling_state, last, 200, start + 3s, start + 4s) == std::vector{Advice::start_listening});
  CHECK(polling_state.is_draining());
}

TEST_CASE("a collector that finds another one polling asks again once per measurement") {
  auto polling_state = with_timeout(5s);
  int attempts = 0;
  for (int ms = 0; ms < 1000; ++ms)
    attempts +=
        polling_state.polled({.last = 1 + ms}, start + Milliseconds(ms)) == Advice::stay_polling ? 1 : 0;
  CHECK(attempts >= 40);
  CHECK(attempts <= 50);
}

TEST_CASE("a burst after silence is measured by itself") {
  auto polling_state = with_timeout(5s);
  CHECK(polling_state.polled({.last = 1}, start) == Advice::none);
  CHECK(polling_state.polled({.last = 1'000'000}, start + 1h) == Advice::none);
  CHECK(polling_state.polled({.last = 1'000'009}, start + 1h + 20ms) == Advice::none);
  CHECK(polling_state.polled({.last = 1'000'019}, start + 1h + 40ms) == Advice::stay_polling);
}

TEST_CASE("a poll that saw nothing of the queue is not measured") {
  auto polling_state = with_timeout(5s);
  std::int64_t last = 1;
  poll_on(polling_state, last, 1000, start, start + 1s);
  REQUIRE(polling_state.is_polling());
  CHECK(polling_state.polled({.last = 0}, start + 1s + 30ms) == Advice::none);
  CHECK(polling_state.is_polling());
}

TEST_CASE("if inserts always notify no collector keeps polling, and a polling one starts to listen") {
  auto polling_state = with_timeout(5s);
  std::int64_t last = 1;
  poll_on(polling_state, last, 1000, start, start + 1s);
  REQUIRE(polling_state.is_polling());
  polling_state.configure({.allowed = false, .batch_timeout = 5s, .poll_interval = 1s});
  CHECK(poll_on(polling_state, last, 1000, start + 1s, start + 2s) == std::vector{Advice::start_listening});
}

TEST_CASE("a polling collector polls after half the batch timeout, limited to 0.5 ms to 5 ms") {
  for (const auto& [timeout, pause] :
       std::vector<std::pair<Milliseconds, std::chrono::microseconds>>{{0ms, 500us}, {4ms, 2ms}, {5s, 5ms}}) {
    auto polling_state = with_timeout(timeout);
    polling_state.stays_polling(start);
    CHECK(polling_state.next_poll() == start + pause);
  }
}

TEST_CASE("a draining collector polls at once, then at doubling intervals up to the poll interval") {
  auto polling_state = with_timeout(5s);
  CHECK(polling_state.next_poll() == TimePoint::max());
  polling_state.start_draining(start);
  CHECK(polling_state.next_poll() == start);
  std::vector<Milliseconds> waits;
  auto now = start + 1ms;
  for (int polls = 0; polls < 12; ++polls) {
    polling_state.polled({.last = 1}, now);
    waits.push_back(std::chrono::duration_cast<Milliseconds>(polling_state.next_poll() - now));
    now = polling_state.next_poll();
  }
  CHECK(waits == std::vector{1ms, 2ms, 4ms, 8ms, 16ms, 32ms, 64ms, 128ms, 256ms, 512ms, 1000ms, 1000ms});
  polling_state.drained();
  CHECK(polling_state.next_poll() == TimePoint::max());
}

}  // namespace mailroom::test::polling_state_test
