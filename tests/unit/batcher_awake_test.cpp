// When an awake collector looks, which no notification tells of tokens.

#include "support/batcher_play.hpp"
#include "support/catch.hpp"

using namespace mailroom;
using namespace mailroom::test;

TEST_CASE("without notifications the timeout of what a look finds new counts from the look before") {
  Batcher batcher({Milliseconds(20), Milliseconds(1000)});
  ClaimReply pending_reply;
  pending_reply.pending = 1;
  batcher.claimed({.look = true, .from = at(100)}, {}, at(100), at(100));
  batcher.notified();
  const auto look = batcher.decide(at(105), true);
  CHECK_FALSE(look.partial);
  batcher.claimed(look, pending_reply, at(105), at(105));
  CHECK_FALSE(batcher.decide(at(119), true).look);
  CHECK(batcher.decide(at(120), true).partial);
  // A look that comes later than that takes at once what it finds.
  batcher.claimed({.look = true, .partial = true, .from = at(120)}, {}, at(120), at(120));
  batcher.notified();
  CHECK_FALSE(batcher.decide(at(139), true).partial);
  CHECK(batcher.decide(at(140), true).partial);
  CHECK_FALSE(batcher.decide(at(140), false).partial);
}

TEST_CASE(
    "awake, the look that takes the next batch acknowledges this one, after five milliseconds at most") {
  ClaimReply batch;
  batch.lease = Lease{1, 1};
  struct Case {
    Time timeout;
    bool awake;
    bool more;
    Time next;
    bool partial;
  };
  const auto [timeout, awake, more, next, partial] =
      GENERATE(Case{4, true, false, 104, true}, Case{20, true, false, 105, false},
               Case{20, true, true, 102, false}, Case{4, false, false, 102, false});
  CAPTURE(timeout, awake, more);
  Batcher batcher({Milliseconds(timeout), Milliseconds(1000)});
  batch.more = more;
  batcher.claimed({.look = true, .partial = true}, batch, at(100), at(102));
  if (next > 102) {
    batcher.notified();
    const auto wait = batcher.decide(at(102), awake);
    CHECK_FALSE(wait.look);
    CHECK(since_start(wait.until) == next);
  }
  const auto look = batcher.decide(at(next), awake);
  CHECK(look.look);
  CHECK(look.partial == partial);
  // Who falls asleep asks at once.
  CHECK(batcher.decide(at(102), false).look);
}
