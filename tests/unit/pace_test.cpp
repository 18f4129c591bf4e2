#include "delivery/pace.hpp"

#include "delivery/endpoint.hpp"
#include "support/catch.hpp"

namespace mailroom::test::pace_test {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint start{1h};

/// `count` mails that left and were taken at `when`.
void take(delivery::Pace& pace, int count, TimePoint when) {
  for (int i = 0; i < count; ++i)
    pace.took(when, when);
}

}  // namespace

TEST_CASE("without a refusal there is no limit") {
  delivery::Pace pace(1);
  take(pace, 1000, start);
  pace.left(start);
  CHECK_FALSE(pace.limit());
  CHECK(pace.next() <= start);
  CHECK(pace.room(10) == 10);
}

TEST_CASE("the first limit is a little less than what was taken in the second before") {
  delivery::Pace pace(1);
  take(pace, 100, start - 2s);
  take(pace, 20, start);
  CHECK(pace.refused(start, start + 100ms));
  CHECK(*pace.limit() == Approx(18));
  CHECK(pace.next() > start + 100ms);
  CHECK(pace.next() < start + 300ms);
  CHECK(pace.room(1000) == 90);
  CHECK(pace.room(10) == 10);
}

TEST_CASE("mails that left before the last cut do not cut again") {
  delivery::Pace pace(1);
  take(pace, 20, start);
  CHECK(pace.refused(start, start + 100ms));
  for (int i = 0; i < 10; ++i)
    CHECK_FALSE(pace.refused(start + 50ms, start + 200ms));
  CHECK(*pace.limit() == Approx(18));
}

TEST_CASE("a limit never falls below what is taken") {
  delivery::Pace pace(1);
  take(pace, 10, start);
  REQUIRE(pace.refused(start, start));
  auto now = start;
  for (int second = 0; second < 60; ++second) {
    for (int i = 0; i < 10; ++i)
      pace.took(now, now + i * 100ms);
    now += 1s;
    // One in ten is refused.
    pace.refused(now, now);
    REQUIRE(*pace.limit() > 8);
  }
}

TEST_CASE(
    "to another side that takes nothing a mail goes every ten seconds in the end, and to one that opens soon more") {
  delivery::Pace pace(1);
  take(pace, 50, start);
  auto now = start + 10ms;
  int refused = 0;
  for (; now < start + 2min; now = std::max(now + 1ms, pace.next())) {
    pace.left(now);
    pace.refused(now, now);
    ++refused;
  }
  CHECK(*pace.limit() == Approx(delivery::Pace::lowest));
  CHECK(refused < 120);
  const auto opened = now;
  for (int taken = 0; taken < 20; ++taken, now = std::max(now + 1ms, pace.next())) {
    pace.left(now);
    pace.took(now, now);
  }
  CHECK(now - opened < 30s);
}

TEST_CASE("a limit ends when nothing is refused any more") {
  delivery::Pace pace(1);
  take(pace, 1, start);
  REQUIRE(pace.refused(start, start));
  auto now = start;
  while (pace.limit() && now < start + 10min) {
    now = std::max(now + 10ms, pace.next());
    pace.left(now);
    pace.took(now, now);
  }
  CHECK(now - start < 1min);
}

TEST_CASE("another side that refuses everything for minutes has no limit, but is shut") {
  delivery::Pace pace(1);
  take(pace, 100, start);
  for (const auto after : {1s, 60s, 76s}) {
    CHECK_FALSE(pace.is_shut(start + after));
    pace.refused(start + after, start + after);
  }
  CHECK(pace.is_shut(start + 77s));
  pace.took(start + 77s, start + 78s);
  CHECK_FALSE(pace.is_shut(start + 78s));
}

TEST_CASE("a mail that is refused again and again while others are taken is at fault itself") {
  delivery::Pace pace(1);
  take(pace, 100, start);
  delivery::Refusals refusals;
  auto now = start + 1s;
  for (int i = 0; i < delivery::Refusals::most; ++i, now += 1s) {
    CHECK_FALSE(refusals.are_about_mail());
    CHECK(refusals.is_news(pace) == (i < 3));
    refusals.add(pace, now);
    // Nothing is taken in between.
    refusals.add(pace, now);
    CHECK_FALSE(refusals.are_many());
    take(pace, 20, now + 500ms);
    refusals.begin_again();
  }
  CHECK(refusals.are_about_mail());
}

TEST_CASE("fewer connections are used once some were refused, and one more is tried later and later") {
  delivery::AtOnce at_once(4);
  CHECK(at_once.limit(start) == 4);
  at_once.refused_connection(3, start, start);
  at_once.refused_connection(2, start - 1s, start);
  CHECK(at_once.limit(start + 9s) == 2);
  CHECK(at_once.limit(start + 10s) == 3);
  at_once.refused_connection(2, start + 10s, start + 11s);
  CHECK(at_once.limit(start + 30s) == 2);
  CHECK(at_once.limit(start + 31s) == 3);
  at_once.forget();
  CHECK(at_once.limit(start + 31s) == 4);
}

TEST_CASE("mails that were refused together lower the number once") {
  delivery::AtOnce at_once(8);
  at_once.refused_mail(7, start, start + 1s);
  at_once.refused_mail(6, start, start + 1s);
  CHECK(at_once.limit(start + 1s) == 7);
  at_once.refused_mail(0, start + 2s, start + 3s);
  CHECK(at_once.limit(start + 3s) == 1);
}

TEST_CASE(
    "while others have all connections of a relay, one is tried later and later, and then it takes none of us") {
  delivery::AtOnce at_once(4);
  auto now = start;
  for (const auto wait : {1s, 2s, 4s, 8s, 16s, 30s}) {
    CHECK(at_once.refused_all(now));
    CHECK(at_once.limit(now) == 0);
    CHECK(at_once.opens_at() == now + wait);
    now += wait;
    CHECK(at_once.limit(now) == 4);
  }
  CHECK_FALSE(at_once.refused_all(now));
  at_once.answered();
  CHECK(at_once.refused_all(now));
  CHECK(at_once.opens_at() == now + 1s);
}

}  // namespace mailroom::test::pace_test
