#include <vector>

#include "delivery/delivery_sink.hpp"
#include "support/catch.hpp"

namespace mailroom::test::claim_pace_test {

using namespace std::chrono_literals;

namespace {

constexpr int whole = 100;

/// Plays batches one after the other.
struct Play {
  delivery::ClaimPace pace{};
  TimePoint now{};

  /// A batch of `tokens` begins `claim` after the end of the one before, and keeps the receiver busy.
  void batch(std::chrono::nanoseconds claim, std::chrono::nanoseconds busy, int tokens = whole,
             bool is_alone = true) {
    pace.began(now += claim, is_alone);
    pace.finished(now += busy, busy, tokens, whole, is_alone);
  }
};

}  // namespace

TEST_CASE("two batches are open until it is known what a claim takes, and a few more") {
  Play play;
  CHECK(play.pace.overlaps());
  play.batch(1h, 10ms);
  CHECK(play.pace.overlaps());
  for (int i = 1; i < delivery::ClaimPace::most_overlapping(1); ++i)
    play.batch(1h, 10ms, whole / 2, false);
  CHECK_FALSE(play.pace.overlaps());
}

TEST_CASE("two batches are open if the receiver takes longer than what claims cost beside their tokens") {
  struct Case {
    std::chrono::nanoseconds claim;
    std::chrono::nanoseconds busy;
    int tokens;
    bool overlaps;
  };
  for (const auto& [claim, busy, tokens, expected] :
       {Case{2ms, 200us, 10, false},     // of a whole claim it would be 2 ms
        Case{2ms, 300us, 10, true},      // 3 ms, and 2.85 ms beside the tokens
        Case{3ms, 2ms, 100, false},      // a fast relay, small claims
        Case{3ms, 4ms, 100, true},       // a slower one
        Case{25ms, 4ms, 100, false}}) {  // a slow disk
    INFO(claim.count() << " " << busy.count());
    Play play;
    play.batch(0ms, busy, tokens);
    play.batch(claim, busy, tokens);
    CHECK(play.pace.overlaps() == expected);
  }
}

TEST_CASE(
    "what two batches show of each other decides nothing, and one is alone again, the later the surer") {
  Play play;
  play.batch(0ms, 10ms);
  for (const int votes : {2, 3, 3}) {
    play.batch(2ms, 10ms);
    if (!play.pace.overlaps()) play.batch(2ms, 10ms);
    int overlapping = 0;
    for (; play.pace.overlaps(); ++overlapping)
      play.batch(1h, 1us, whole / 2, false);
    CHECK(overlapping == delivery::ClaimPace::most_overlapping(votes));
  }
  play.batch(2ms, 10ms);
  CHECK_FALSE(play.pace.overlaps());
  play.batch(2ms, 10ms);
  CHECK(play.pace.overlaps());
}

TEST_CASE("a batch behind two says nothing of a claim: it may have been claimed before they were finished") {
  Play play;
  while (play.pace.overlaps())
    play.batch(0ms, 1ms, whole / 2, false);
  play.batch(1us, 10ms);
  CHECK_FALSE(play.pace.overlaps());
  play.batch(20ms, 10ms);
  CHECK_FALSE(play.pace.overlaps());
}

TEST_CASE("a single slow batch changes nothing, and a slower receiver does") {
  Play play;
  for (int i = 0; i < 20; ++i)
    play.batch(3ms, 1ms);
  play.batch(3ms, 15ms);
  CHECK_FALSE(play.pace.overlaps());
  // Nor does the time in which nothing was due.
  play.batch(1h, 1ms);
  int slow = 0;
  for (; !play.pace.overlaps() && slow < 100; ++slow)
    play.batch(3ms, 15ms);
  CHECK(slow >= 2);
  CHECK(slow <= 8);
}

TEST_CASE("a batch without a token says nothing of the receiver") {
  Play play;
  play.batch(0ms, 1ms);
  play.batch(10ms, 1ms);
  CHECK_FALSE(play.pace.overlaps());
  for (int i = 0; i < delivery::ClaimPace::most_votes; ++i)
    play.batch(1ms, 1h, 0);
  CHECK_FALSE(play.pace.overlaps());
}

}  // namespace mailroom::test::claim_pace_test
