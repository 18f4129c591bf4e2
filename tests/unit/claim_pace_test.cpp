#include "delivery/delivery_sink.hpp"
#include "support/catch.hpp"

namespace mailroom::test::claim_pace_test {

using namespace std::chrono_literals;

namespace {

/// After a batch of `tokens`, half of a claim, that the receiver had for `busy`, `claim` after the one
/// before.
bool overlaps(std::chrono::nanoseconds claim, std::chrono::nanoseconds busy, int tokens) {
  delivery::ClaimPace pace;
  const TimePoint start{};
  pace.finished(start, 1ms, tokens, 2 * tokens);
  pace.began(start + claim);
  pace.finished(start + claim + busy, busy, tokens, 2 * tokens);
  return pace.overlaps();
}

}  // namespace

TEST_CASE("two batches are open until it is known what a claim takes") {
  delivery::ClaimPace pace;
  CHECK(pace.overlaps());
  pace.began(TimePoint{} + 1h);
  pace.finished(TimePoint{} + 1h + 1us, 1us, 5, 10);
  CHECK(pace.overlaps());
}

TEST_CASE("two batches are open if the receiver takes longer than what claims cost beside their tokens") {
  struct Case {
    std::chrono::nanoseconds claim;
    std::chrono::nanoseconds busy;
    int tokens;
    bool overlaps;
  };
  for (const auto& [claim, busy, tokens, expected] :
       {Case{1ms, 400us, 5, false},                           // a fast relay, small claims
        Case{1ms, 1ms, 5, true},                              // a slower one
        Case{2ms, 5ms, 50, true}, Case{8ms, 4ms, 320, true},  // a claim of many tokens
        Case{20ms, 4ms, 320, false}}) {                       // a slow disk
    INFO(claim.count() << " " << busy.count());
    CHECK(overlaps(claim, busy, tokens) == expected);
  }
}

TEST_CASE("a batch without a token says nothing of the receiver") {
  delivery::ClaimPace pace;
  pace.finished(TimePoint{}, 1ms, 5, 10);
  pace.began(TimePoint{} + 10ms);
  pace.finished(TimePoint{} + 11ms, 1ms, 5, 10);
  CHECK_FALSE(pace.overlaps());
  pace.began(TimePoint{} + 12ms);
  pace.finished(TimePoint{} + 12ms, 0ms, 0, 10);
  CHECK_FALSE(pace.overlaps());
}

}  // namespace mailroom::test::claim_pace_test
