// Which of several queues a consumer polls next, in virtual time.

#include "consumer/queue_turns.hpp"

#include <map>
#include <random>

#include "support/catch.hpp"

namespace mailroom::test::queue_turns_test {

using namespace std::chrono_literals;

namespace {

const TimePoint start{1h};

consumer::QueueTurns::Options options(Milliseconds max_wait = 30s) {
  return {.batcher = {.batch_timeout = 0ms, .poll_interval = 1h, .line_limit = 10}, .max_wait = max_wait};
}

struct Prioritised {
  std::string name;
  int priority = 0;
};

/// Turns of queues with priorities, after an empty poll of each.
struct Rig {
  TimePoint now = start;
  consumer::QueueTurns turns;

  explicit Rig(const std::vector<Prioritised>& queues, Milliseconds max_wait = 30s)
      : turns(names_of_all(queues), options(max_wait)) {
    std::vector<queue::QueueRecord> records;
    for (const auto& [name, priority] : queues)
      records.push_back({.name = name, .properties = {.priority = priority}});
    turns.define(records);
    turns.connected();
    for (std::size_t i = 0; i < queues.size(); ++i)
      answer({});
    REQUIRE_FALSE(turns.next(now).decision.poll);
  }

  static std::vector<std::string> names_of_all(const std::vector<Prioritised>& queues) {
    std::vector<std::string> names;
    for (const auto& queue : queues)
      names.push_back(queue.name);
    return names;
  }

  /// The queue of the next turn; empty if none wants one.
  std::string answer(const claim::ClaimReply& reply) {
    const auto turn = turns.next(now);
    if (!turn.decision.poll) return {};
    turns.claimed(turn, reply, now, now);
    return turn.queue;
  }

  /// A full batch, with more behind it.
  static claim::ClaimReply backlog() { return {.lease = claim::Lease{1, 1}, .more = true}; }
};

}  // namespace

TEST_CASE("the queue of the highest priority has the turn as long as it wants it") {
  Rig rig({{"low", 0}, {"high", 10}, {"middle", 5}});
  rig.turns.notified();
  CHECK(rig.answer(Rig::backlog()) == "high");
  CHECK(rig.answer(Rig::backlog()) == "high");
  CHECK(rig.answer({}) == "high");
  CHECK(rig.answer({}) == "middle");
  CHECK(rig.answer({}) == "low");
  CHECK(rig.answer({}).empty());
}

TEST_CASE("a notification gives the turn back to the higher priority in the middle of a backlog") {
  Rig rig({{"low", 0}, {"high", 10}});
  rig.turns.notified();
  CHECK(rig.answer({}) == "high");
  CHECK(rig.answer(Rig::backlog()) == "low");
  CHECK(rig.answer(Rig::backlog()) == "low");
  rig.turns.notified();
  CHECK(rig.answer({}) == "high");
  CHECK(rig.answer(Rig::backlog()) == "low");
}

TEST_CASE("queues of one priority take turns") {
  Rig rig({{"a", 3}, {"b", 3}, {"c", 3}});
  rig.turns.notified();
  std::map<std::string, int> turns;
  for (int i = 0; i < 30; ++i) {
    rig.now += 1ms;
    ++turns[rig.answer(Rig::backlog())];
  }
  CHECK(turns == std::map<std::string, int>{{"a", 10}, {"b", 10}, {"c", 10}});
}

TEST_CASE("a lower queue has a turn after the longest wait") {
  Rig rig({{"low", 0}, {"high", 10}}, 100ms);
  rig.turns.notified();
  int low = 0;
  for (int i = 0; i < 1000; ++i) {
    rig.now += 1ms;
    low += rig.answer(Rig::backlog()) == "low" ? 1 : 0;
  }
  CHECK(low >= 9);
  CHECK(low <= 10);
}

TEST_CASE("a queue without an allowance leaves the turn to others, and asks again at the time of the next") {
  Rig rig({{"low", 0}, {"high", 10}});
  rig.turns.notified();
  CHECK(rig.answer({.wait = 200ms}) == "high");
  CHECK(rig.answer({}) == "low");
  CHECK(rig.turns.next(rig.now).decision.until == rig.now + 200ms);
  rig.turns.notified();
  CHECK(rig.answer({}) == "low");
  rig.now += 200ms;
  CHECK(rig.answer({}) == "high");
}

TEST_CASE("a lower queue does not take the token for which a higher one waits too") {
  Rig rig({{"low", 0}, {"high", 10}});
  // One token every 71 ms: each claim learns the time of the next, and knows it as precisely as it was short.
  const auto token = rig.now + 71ms;
  const auto claim = [&](const std::string& queue, std::chrono::nanoseconds took) {
    rig.turns.notified();
    const auto turn = rig.turns.next(rig.now);
    REQUIRE(turn.queue == queue);
    const auto asked = std::chrono::ceil<Milliseconds>(token - rig.now - took / 4);
    rig.turns.claimed(turn, {.wait = asked}, rig.now, rig.now + took);
    rig.now += took;
  };
  claim("high", 4ms);
  claim("low", 1ms);
  rig.now = token + 1ms;
  const auto turn = rig.turns.next(rig.now);
  CHECK_FALSE(turn.decision.poll);
  CHECK(turn.decision.until > rig.now);
  CHECK(turn.decision.until <= rig.now + 4ms);
  rig.now = turn.decision.until;
  CHECK(rig.answer({}) == "high");
  CHECK(rig.answer({}) == "low");
}

TEST_CASE("a higher queue that waits for a rate of its own leaves the turn to others") {
  Rig rig({{"low", 0}, {"high", 10}});
  rig.turns.notified();
  CHECK(rig.answer({.wait = 60s}) == "high");
  for (int i = 0; i < 1000; ++i) {
    CHECK(rig.answer(Rig::backlog()) == "low");
    rig.now += 50ms;
  }
}

TEST_CASE("a paused queue is polled again when its definition changes") {
  Rig rig({{"one", 0}});
  rig.turns.notified();
  CHECK(rig.answer({.wait = std::nullopt}) == "one");
  CHECK(rig.turns.is_paused("one"));
  CHECK(rig.turns.drained());
  rig.turns.notified();
  CHECK(rig.answer({}).empty());
  rig.turns.released();
  CHECK(rig.answer({}) == "one");
  CHECK_FALSE(rig.turns.is_paused("one"));
}

TEST_CASE("queues are drained when each has had a claim that found nothing") {
  Rig rig({{"one", 0}, {"two", 0}});
  CHECK(rig.turns.drained());
  rig.turns.notified();
  rig.answer(Rig::backlog());
  CHECK_FALSE(rig.turns.drained());
  rig.now += 1ms;
  rig.answer({.wait = 50ms});
  CHECK_FALSE(rig.turns.drained());
  while (!rig.answer({}).empty()) {
  }
  rig.now += 50ms;
  while (!rig.answer({}).empty()) {
  }
  CHECK(rig.turns.drained());
}

TEST_CASE("arrivals are those that the queue which is furthest sees") {
  Rig rig({{"behind", 0}, {"ahead", 0}});
  rig.turns.notified();
  const auto first = rig.answer({.last = 900, .more = true});
  CHECK(rig.turns.last() == 900);
  rig.now += 1ms;
  CHECK(rig.answer({.last = 50, .more = true}) != first);
  CHECK(rig.turns.last() == 900);
  rig.now += 1ms;
  rig.answer({.last = 0, .more = true});
  CHECK(rig.turns.last() == 0);
}

TEST_CASE(
    "in any play no queue that wants a turn waits longer than the longest wait and the turns of the others") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
    std::vector<Prioritised> definitions;
    const int count = 2 + below(4);
    for (int i = 0; i < count; ++i)
      definitions.push_back({std::to_string(i), below(3)});
    constexpr auto max_wait = 50ms;
    Rig rig(definitions, max_wait);
    std::map<std::string, TimePoint> last_turn;
    for (const auto& definition : definitions)
      last_turn[definition.name] = rig.now;
    rig.turns.notified();
    for (int i = 0; i < 2000; ++i) {
      rig.now += Milliseconds(1 + below(3));
      const auto queue = rig.answer(Rig::backlog());
      REQUIRE_FALSE(queue.empty());
      REQUIRE(rig.now - last_turn[queue] <= max_wait + 3ms * count);
      last_turn[queue] = rig.now;
    }
  }
}

}  // namespace mailroom::test::queue_turns_test
