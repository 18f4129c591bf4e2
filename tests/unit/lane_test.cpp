// When messages come back that a lane has no time for, and how fast one of a given rate goes.

#include "delivery/lane.hpp"

#include <set>

#include "delivery/delivery_policy.hpp"
#include "support/catch.hpp"

namespace mailroom::test::lane_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr TimePoint start{std::chrono::hours(1)};

}  // namespace

TEST_CASE("messages that are turned away come back one after the other") {
  delivery::ReturnTimes times;
  CHECK(times.next(start, seconds(5), milliseconds(20)) == seconds(5));
  CHECK(times.next(start, seconds(5), milliseconds(20)) == milliseconds(5020));
  CHECK(times.next(start + seconds(1), seconds(5), milliseconds(20)) == seconds(5));
  // Whoever is alone waits no longer than it has to.
  CHECK(times.next(start + minutes(10), seconds(1), milliseconds(20)) == seconds(1));
}

TEST_CASE("many that are turned away are spread over four minutes, again and again") {
  delivery::ReturnTimes times;
  std::set<std::int64_t> waits;
  Milliseconds longest{0};
  for (int i = 0; i < 20'000; ++i) {
    const auto wait = times.next(start, seconds(1), milliseconds(20));
    longest = std::max(longest, wait);
    waits.insert(wait.count());
  }
  CHECK(longest <= delivery::ReturnTimes::longest);
  CHECK(longest > delivery::ReturnTimes::longest - seconds(1));
  // No time has more than two of them.
  CHECK(waits.size() >= 10'000);
}

TEST_CASE("a rate that is given holds beside the one that is learnt") {
  delivery::Pace pace(1, config::Rate{.count = 10, .period = seconds(1)});
  CHECK(pace.gap() == milliseconds(100));
  CHECK(pace.room(1000) == 50);
  pace.left(start);
  CHECK(pace.next() == start + milliseconds(100));
  // The receiver asks for less, and then for nothing any more.
  pace.refused(start, start + milliseconds(10));
  CHECK(pace.limit() <= 1.0);
  pace.forget();
  CHECK(pace.limit() == 10.0);
  CHECK_FALSE(delivery::Pace(1).limit());
}

TEST_CASE("a message without an answer counts as maybe accepted, and waits for it") {
  const auto outcome =
      delivery::unanswered_outcome({.token = 7, .action = "message", .take_overs = 1}, minutes(3), true);
  CHECK(outcome.state == fate::Outcome::deferred);
  CHECK(outcome.attempts == 0);
  CHECK(outcome.unknowns == 2);
  CHECK(outcome.wait == minutes(3));
  CHECK(outcome.reply.empty());
  CHECK(delivery::unanswered_outcome({.take_overs = 1}, minutes(3), false).unknowns == 1);
}

}  // namespace mailroom::test::lane_test
