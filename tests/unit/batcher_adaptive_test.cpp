// When a collector polls whose limit and timeout are ranges, and how much it claims.

#include <vector>

#include "support/batcher_play.hpp"
#include "support/catch.hpp"

namespace mailroom::test::batcher_adaptive_test {

using namespace std::chrono_literals;

namespace {

constexpr int most = 500;

consumer::Batcher::Options options(Milliseconds line_cost) {
  return {
      .batch_timeout = 5s,
      .poll_interval = 1s,
      .line_limit = most,
      .adaptive = consumer::Batcher::Adaptive{.min_limit = 1, .min_timeout = 0ms, .line_cost = line_cost}};
}

claim::ClaimReply took(int tokens, bool more = false) {
  return {.lease = claim::Lease{1, 1}, .size = tokens, .last = 1, .more = more};
}

claim::ClaimReply left(int tokens) {
  return {.pending = tokens, .last = 1};
}

/// A batcher with a session whose queue was empty.
class Rig {
 public:
  explicit Rig(Milliseconds line_cost = 1s) : batcher(options(line_cost)) {
    batcher.connected();
    const auto decision = batcher.decide(at(0));
    CHECK(decision.partial);
    CHECK(decision.limit == most);
    reply(decision, {});
  }

  consumer::Batcher::Decision notified(Time time) {
    now = time;
    batcher.notified();
    const auto decision = batcher.decide(at(now));
    CHECK(decision.poll);
    return decision;
  }

  /// The claim takes no time.
  void reply(const consumer::Batcher::Decision& decision, const claim::ClaimReply& reply) {
    batcher.claimed(decision, reply, at(now), at(now));
  }

  /// Lone tokens, each of which waits for the next, until they are `full`.
  int wait_for_full(Time gap) {
    for (int waiting = 1; waiting < most; ++waiting) {
      const auto decision = notified(now + gap);
      if (decision.partial || decision.limit == waiting) return waiting;
      reply(decision, left(waiting));
      if (batcher.decide(at(now)).partial) return waiting;
    }
    return 0;
  }

  consumer::Batcher batcher;
  Time now = 0;
};

}  // namespace

TEST_CASE("a token that comes alone is taken at once, with all that came with it") {
  Rig rig;
  for (int i = 1; i <= 20; ++i) {
    const auto decision = rig.notified(i * 10'000);
    REQUIRE(decision.partial);
    REQUIRE(decision.limit == most);
    rig.reply(decision, took(1));
    // The claim that acknowledges the batch.
    rig.reply(rig.batcher.decide(at(rig.now)), {});
    CHECK_FALSE(rig.batcher.decide(at(rig.now)).poll);
  }
}

TEST_CASE("tokens that come fast wait until a line of them costs least, and are then taken by one claim") {
  Rig rig;
  int limit = 0;
  for (int line = 0; line < 40; ++line) {
    limit = rig.wait_for_full(10);
    REQUIRE(limit > 0);
    rig.reply(rig.batcher.decide(at(rig.now)), took(limit, true));
    rig.reply(rig.batcher.decide(at(rig.now)), {});
  }
  // 14 x 15 / 2 is more than 1 s / 10 ms, and 13 x 14 / 2 is not.
  CHECK(limit == 14);
}

TEST_CASE("the timeout counts from the first token, and becomes shorter when tokens come faster") {
  Rig rig;
  for (int line = 0; line < 20; ++line) {
    const int limit = rig.wait_for_full(100);
    rig.reply(rig.batcher.decide(at(rig.now)), took(limit, true));
    rig.reply(rig.batcher.decide(at(rig.now)), {});
  }
  rig.reply(rig.notified(rig.now + 100), left(1));
  const auto first = rig.now;
  const auto slow = since_start(rig.batcher.decide(at(first)).until);
  CHECK(slow == first + 900);
  // Four more tokens within a millisecond.
  rig.reply(rig.notified(first + 1), left(5));
  const auto fast = since_start(rig.batcher.decide(at(first + 1)).until);
  CHECK(fast > first + 500);
  CHECK(fast < slow);
  // The next token comes too late for them.
  const auto decision = rig.batcher.decide(at(fast + 1));
  CHECK(decision.partial);
  CHECK(decision.limit == most);
}

TEST_CASE(
    "after a full batch the claim asks for the upper limit, and takes a smaller batch if that is full") {
  Rig rig;
  const auto burst = rig.notified(100);
  rig.reply(burst, took(most, true));
  auto decision = rig.batcher.decide(at(100));
  CHECK(decision.limit == most);
  rig.reply(decision, took(most, true));
  rig.reply(rig.batcher.decide(at(100)), left(3));
  // A thousand tokens within 100 ms: three are no batch yet.
  CHECK_FALSE(rig.batcher.decide(at(100)).poll);
  decision = rig.notified(103);
  CHECK(decision.limit > 3);
  CHECK(decision.limit < most);
  CHECK_FALSE(decision.partial);
  // More came than were needed.
  rig.reply(decision, took(decision.limit, true));
  decision = rig.batcher.decide(at(103));
  CHECK(decision.limit == most);
  CHECK_FALSE(decision.partial);
  rig.reply(decision, left(300));
  decision = rig.batcher.decide(at(103));
  CHECK(decision.poll);
  CHECK(decision.partial);
  CHECK(decision.limit == most);
}

TEST_CASE("what waits at the start or was leased before says nothing about the rate") {
  Rig rig;
  rig.batcher.connected();
  auto decision = rig.batcher.decide(at(0));
  rig.reply(decision, took(most, true));
  rig.reply(rig.batcher.decide(at(0)), took(100));
  rig.reply(rig.batcher.decide(at(0)), {});
  CHECK(rig.notified(10).partial);
  rig.reply(rig.batcher.decide(at(10)), {.lease = claim::Lease{1, 2}, .size = 400, .more = true});
  rig.reply(rig.batcher.decide(at(10)), {});
  CHECK(rig.notified(20).partial);
}

TEST_CASE("a token that several claims see counts once") {
  // Were it counted at each poll, twenty polls in 20 ms would look like a thousand tokens a second.
  Rig rig(400ms);
  Rig other(400ms);
  for (auto* each : {&rig, &other}) {
    for (int token = 1; token <= 8; ++token)
      each->reply(each->notified(each->now + 100), took(1));
  }
  auto decision = rig.notified(900);
  REQUIRE_FALSE(decision.partial);
  rig.reply(decision, left(1));
  other.reply(other.notified(900), left(1));
  const auto until = other.batcher.decide(at(900)).until;
  for (Time time = 901; time < 920; ++time)
    rig.reply(rig.notified(time), left(1));
  CHECK(rig.batcher.decide(at(920)).until == until);
}

TEST_CASE("with a fixed limit several lines may be claimed, and the timeout adapts") {
  auto with = options(1s);
  with.line_limit = 10;
  with.lines_per_claim = 4;
  with.adaptive->min_limit = 10;
  consumer::Batcher batcher(with);
  batcher.connected();
  auto decision = batcher.decide(at(0));
  CHECK(decision.limit == 40);
  batcher.claimed(decision, {}, at(0), at(0));
  batcher.notified();
  decision = batcher.decide(at(100));
  CHECK(decision.partial);
  batcher.claimed(decision, took(40, true), at(100), at(100));
  batcher.claimed(batcher.decide(at(100)), left(25), at(100), at(100));
  decision = batcher.decide(at(100));
  CHECK(decision.limit == 20);
  CHECK_FALSE(decision.partial);
}

TEST_CASE("fixed values after a reload are used as such, and ranges start with what a lone token needs") {
  Rig rig;
  rig.batcher.configure({.batch_timeout = 5s, .poll_interval = 1s, .line_limit = 10});
  auto decision = rig.notified(50);
  CHECK_FALSE(decision.partial);
  CHECK(decision.limit == 10);
  rig.reply(decision, left(2));
  CHECK_FALSE(rig.batcher.decide(at(5049)).partial);
  CHECK(rig.batcher.decide(at(5050)).partial);
  rig.batcher.configure(options(1s));
  CHECK(rig.notified(60).partial);
}

}  // namespace mailroom::test::batcher_adaptive_test
