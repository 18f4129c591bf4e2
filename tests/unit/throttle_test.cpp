#include "send/throttle.hpp"

#include "support/catch.hpp"

namespace mailroom::test::throttle_test {

using namespace std::chrono_literals;

namespace {

const TimePoint start{1h};

double seconds(TimePoint::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

TEST_CASE("without a throttling answer there is no limit") {
  Throttle throttle;
  throttle.delivered(10, start, start + 1s, false);
  CHECK_FALSE(throttle.limit());
  CHECK(throttle.next() == TimePoint{});
}

TEST_CASE("each throttling answer halves the rate") {
  Throttle throttle;
  throttle.delivered(10, start, start + 1s, true);
  CHECK(*throttle.limit() == Approx(5));
  CHECK(seconds(throttle.next() - start) == Approx(2));
  throttle.delivered(10, start + 2s, start + 3s, true);
  CHECK(*throttle.limit() == Approx(2.5));
  CHECK(seconds(throttle.next() - start) == Approx(2 + 4));
}

TEST_CASE("the limit never falls below one mail in ten seconds") {
  Throttle throttle;
  for (int i = 0; i < 20; ++i)
    throttle.delivered(1, start + i * 10s, start + i * 10s + 1s, true);
  CHECK(*throttle.limit() == Approx(0.1));
}

TEST_CASE("the rate recovers step by step, and the limit ends where it began") {
  Throttle throttle;
  throttle.delivered(10, start, start + 1s, true);
  throttle.delivered(10, start + 2s, start + 3s, false);
  CHECK(*throttle.limit() == Approx(5));
  throttle.delivered(10, start + 10s, start + 11s, false);
  CHECK(*throttle.limit() == Approx(6.25));
  throttle.delivered(10, start + 20s, start + 21s, false);
  throttle.delivered(10, start + 30s, start + 31s, false);
  CHECK(*throttle.limit() == Approx(5 * 1.25 * 1.25 * 1.25));
  throttle.delivered(10, start + 40s, start + 41s, false);
  CHECK_FALSE(throttle.limit());
  CHECK(throttle.next() == TimePoint{});
}

TEST_CASE("a batch without a mail changes nothing") {
  Throttle throttle;
  throttle.delivered(10, start, start + 1s, true);
  throttle.delivered(0, start + 20s, start + 20s, false);
  CHECK(*throttle.limit() == Approx(5));
}

}  // namespace mailroom::test::throttle_test
