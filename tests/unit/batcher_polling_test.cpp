// When a polling collector polls, without any notification.

#include "support/batcher_play.hpp"
#include "support/catch.hpp"

namespace mailroom::test::batcher_polling_test {

TEST_CASE("without notifications the timeout of tokens that a poll finds starts at the previous poll") {
  consumer::Batcher batcher({Milliseconds(20), Milliseconds(1000)});
  claim::ClaimReply pending_reply;
  pending_reply.pending = 1;
  batcher.claimed({.poll = true, .from = at(100)}, {}, at(100), at(100));
  batcher.notified();
  const auto poll = batcher.decide(at(105), true);
  CHECK_FALSE(poll.partial);
  batcher.claimed(poll, pending_reply, at(105), at(105));
  CHECK_FALSE(batcher.decide(at(119), true).poll);
  CHECK(batcher.decide(at(120), true).partial);
  // A poll after the timeout takes the tokens at once.
  batcher.claimed({.poll = true, .partial = true, .from = at(120)}, {}, at(120), at(120));
  batcher.notified();
  CHECK_FALSE(batcher.decide(at(139), true).partial);
  CHECK(batcher.decide(at(140), true).partial);
  CHECK_FALSE(batcher.decide(at(140), false).partial);
}

TEST_CASE(
    "while polling, the poll that takes the next batch acknowledges this one, within five milliseconds") {
  claim::ClaimReply batch;
  batch.lease = claim::Lease{1, 1};
  struct Case {
    Time timeout;
    bool polling;
    bool more;
    Time next;
    bool partial;
  };
  const auto [timeout, polling, more, next, partial] =
      GENERATE(Case{4, true, false, 104, true}, Case{20, true, false, 105, false},
               Case{20, true, true, 102, false}, Case{4, false, false, 102, false});
  CAPTURE(timeout, polling, more);
  consumer::Batcher batcher({Milliseconds(timeout), Milliseconds(1000)});
  batch.more = more;
  batcher.claimed({.poll = true, .partial = true}, batch, at(100), at(102));
  if (next > 102) {
    batcher.notified();
    const auto wait = batcher.decide(at(102), polling);
    CHECK_FALSE(wait.poll);
    CHECK(since_start(wait.until) == next);
  }
  const auto poll = batcher.decide(at(next), polling);
  CHECK(poll.poll);
  CHECK(poll.partial == partial);
  // A collector that starts to listen polls at once.
  CHECK(batcher.decide(at(102), false).poll);
}

}  // namespace mailroom::test::batcher_polling_test
