#include "consumer/batcher.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "support/batcher_play.hpp"
#include "support/catch.hpp"

namespace mailroom::test::batcher_test {

using namespace std::chrono_literals;

namespace {

/// `time:tokens` for each batch that was claimed, `time:abandoned` for one that was taken over.
std::string departures(const Play& play) {
  std::string text;
  for (const auto& poll : play.polls()) {
    if (poll.took())
      text += (text.empty() ? "" : " ") + std::to_string(poll.end) + ":" +
              (poll.abandoned ? "abandoned" : std::to_string(poll.taken));
  }
  return text;
}

constexpr BatcherEvent start{0, 0, BatcherEvent::connected};

claim::ClaimReply idle_reply() {
  return {.last = 7, .is_idle = true, .newest = 3, .inserts_notify = true};
}

/// When a collector polls whose claims are answered by `reply`, and which is notified at `notified`.
std::vector<Time> idle_polls(Time end, const std::function<claim::ClaimReply(Time)>& reply,
                             Time notified = -1) {
  consumer::Batcher batcher({Milliseconds(timeout), Milliseconds(poll_interval)});
  batcher.connected();
  std::vector<Time> polls;
  for (Time now = 0; now < end;) {
    if (now == notified) {
      batcher.notified();
      notified = -1;
    }
    const auto decision = batcher.decide(at(now));
    if (decision.poll) {
      polls.push_back(now);
      auto answer = reply(now);
      answer.is_idle = answer.is_idle && decision.routine;
      batcher.claimed(decision, answer, at(now), at(now));
      continue;
    }
    const auto until = since_start(decision.until);
    now = now < notified ? std::min(until, notified) : until;
  }
  return polls;
}

std::ptrdiff_t polls_within(const std::vector<Time>& polls, Time from, Time end) {
  return std::count_if(polls.begin(), polls.end(), [&](Time time) { return time >= from && time < end; });
}

struct Scenario {
  const char* name;
  std::vector<BatcherEvent> events;
  const char* departures;
};

const std::vector<Scenario> scenarios{
    {"a full batch leaves at once", {start, {100, 3}}, "100:3"},
    {"tokens that fill a batch one by one leave with the last",
     {start, {100, 1}, {200, 1}, {300, 1}},
     "300:3"},
    {"a remainder leaves at the timeout since its first token", {start, {100, 1}, {4000, 1}}, "5100:2"},
    {"one notification for many rows drains every full batch", {start, {100, 8}}, "100:3 100:3 5100:2"},
    {"two batches exactly leave nothing behind", {start, {100, 6}}, "100:3 100:3"},
    {"what is there at the start leaves at once", {{0, 7}, start}, "0:3 0:3 0:1"},
    {"what waits at a reconnect leaves at once",
     {start, {100, 2}, {900, 0, BatcherEvent::connected}},
     "900:2"},
    {"after a reconnect clocks run as before",
     {start, {100, 2}, {900, 1, BatcherEvent::connected}, {1000, 1}},
     "900:3 6000:1"},
    {"the clock of a remainder starts anew after a full batch",
     {start, {100, 2}, {4000, 2}},
     "4000:3 9000:1"},
    {"the clock starts anew after a remainder", {start, {100, 1}, {5200, 1}}, "5100:1 10200:1"},
    {"an abandoned batch does not restart the clock of what waits",
     {start, {100, 1}, {2000, 0, BatcherEvent::abandoned}, {2050, 0}},
     "2050:abandoned 5100:1"},
    {"an abandoned batch that comes at the timeout delays nothing",
     {start, {100, 1}, {5099, 0, BatcherEvent::abandoned}},
     "5100:abandoned 5100:1"},
    {"without a notification a full batch leaves at the poll",
     {start, {150, 3, BatcherEvent::silent}},
     "900:3"},
    {"without a notification a remainder's clock starts at the poll",
     {start, {150, 1, BatcherEvent::silent}},
     "5900:1"},
    {"a notification tells of what came without one",
     {start, {150, 2, BatcherEvent::silent}, {300, 1}},
     "300:3"},
    {"a token at the timeout of others leaves with them",
     {start, {100, 1}, {5100, 1, BatcherEvent::silent}},
     "5100:2"},
};

}  // namespace

TEST_CASE("batches are claimed when they are full, at their timeout, and while draining") {
  for (const auto& scenario : scenarios) {
    INFO(scenario.name);
    Play play(scenario.events, [] { return 0; });
    play.until(20'000);
    CHECK(play.fault() == "");
    CHECK(departures(play) == scenario.departures);
    CHECK(play.waiting() == 0);
    CHECK(play.polls().size() < 40);
  }
}

TEST_CASE("the claim after a batch acknowledges it, even if no token waits") {
  Play play({start, {100, 3}}, [] { return 0; });
  play.until(500);
  REQUIRE(play.polls().size() == 3);
  CHECK(play.polls()[1].taken == 3);
  CHECK(play.polls()[2].start == 100);
  CHECK_FALSE(play.polls()[2].partial);
}

TEST_CASE("a poll that took nothing is followed by a pause as long as the poll") {
  Play play({start, {100, 1}, {110, 0}, {150, 0}}, [] { return 40; });
  play.until(500);
  REQUIRE(play.polls().size() == 3);
  CHECK(play.polls()[1].start == 100);
  CHECK(play.polls()[2].start == 180);
  Play full({start, {100, 3}, {110, 3}}, [] { return 40; });
  full.until(185);
  CHECK(departures(full) == "140:3 180:3");
}

TEST_CASE("where nothing happens it rests: it polls seldom, and at once when it is notified") {
  const auto polls = idle_polls(
      600'000, [](Time) { return idle_reply(); }, 300'001);
  CHECK(polls_within(polls, 0, 10'000) >= 11);
  CHECK(polls_within(polls, 20'000, 300'000) <= 280'000 / 7'000 + 1);
  CHECK(polls_within(polls, 300'001, 300'002) == 1);
  CHECK(polls_within(polls, 300'001, 310'000) >= 11);
  CHECK(polls_within(polls, 320'000, 600'000) <= 280'000 / 7'000 + 1);
}

TEST_CASE("it does not rest while something can happen without a notification") {
  const auto busy = [&](const std::function<void(claim::ClaimReply&, Time)>& change) {
    const auto polls = idle_polls(60'000, [&](Time now) {
      auto reply = idle_reply();
      change(reply, now);
      return reply;
    });
    return polls_within(polls, 20'000, 60'000) >= 44;
  };
  CHECK_FALSE(busy([](auto&, Time) {}));
  CHECK(busy([](auto& reply, Time) { reply.inserts_notify = false; }));
  CHECK(busy([](auto& reply, Time) { reply.is_idle = false; }));
  CHECK(busy([](auto& reply, Time) { reply.released = 1; }));
  CHECK(busy([](auto& reply, Time now) { reply.last = 7 + now / 5'000; }));
  CHECK(busy([](auto& reply, Time now) { reply.newest = 3 + now / 5'000; }));
}

TEST_CASE("it is up when what is on record is due, and no more often than it polls otherwise") {
  const auto polls = idle_polls(100'000, [](Time now) {
    auto reply = idle_reply();
    if (now < 45'678) reply.next = Milliseconds(45'678 - now);
    return reply;
  });
  CHECK(polls_within(polls, 45'678, 45'679) == 1);
  const auto overdue = idle_polls(100'000, [](Time) {
    auto reply = idle_reply();
    reply.next = Milliseconds(-1);
    return reply;
  });
  CHECK(overdue.size() <= 114);
}

TEST_CASE("after tokens that came without a notification it does not rest for some minutes") {
  const auto polls = idle_polls(1'400'000, [](Time now) {
    auto reply = idle_reply();
    reply.is_idle = now < 100'000 || now >= 108'000;
    reply.last = now < 100'000 ? 7 : 8;
    return reply;
  });
  CHECK(polls_within(polls, 120'000, 600'000) >= 530);
  CHECK(polls_within(polls, 800'000, 1'400'000) <= 600'000 / 7'000 + 1);
}

TEST_CASE("without tokens it polls once per poll interval, and after many notifications at a limited rate") {
  Play quiet({start}, [] { return 10; });
  quiet.until(10'000);
  CHECK(quiet.polls().size() == 11);
  std::vector<BatcherEvent> storm{start};
  for (Time time = 1; time < 10'000; ++time)
    storm.push_back({time, 0});
  Play stormy(storm, [] { return 10; });
  stormy.until(10'000);
  CHECK(stormy.polls().size() <= 501);
  CHECK(stormy.polls().size() >= 400);
}

TEST_CASE("a poll is routine if there was no notification and no token waits") {
  consumer::Batcher batcher({Milliseconds(50), Milliseconds(1000), limit});
  batcher.connected();
  auto poll = batcher.decide(at(0));
  CHECK_FALSE(poll.routine);
  batcher.claimed(poll, {}, at(0), at(0));
  poll = batcher.decide(at(950));
  CHECK(poll.poll);
  CHECK(poll.routine);
  batcher.claimed(poll, {}, at(950), at(950));
  batcher.notified();
  poll = batcher.decide(at(960));
  CHECK_FALSE(poll.routine);
  claim::ClaimReply waiting;
  waiting.pending = 1;
  batcher.claimed(poll, waiting, at(960), at(960));
  poll = batcher.decide(at(1010));
  CHECK(poll.poll);
  CHECK_FALSE(poll.routine);
}

TEST_CASE("a new configuration applies from the next remainder") {
  consumer::Batcher batcher({Milliseconds(timeout), Milliseconds(poll_interval)});
  batcher.configure({Milliseconds(200), Milliseconds(50)});
  claim::ClaimReply pending_reply;
  pending_reply.pending = 1;
  batcher.claimed({.poll = true, .from = at(0)}, pending_reply, at(0), at(0));
  CHECK(since_start(batcher.decide(at(0)).until) == 45);
  batcher.claimed({.poll = true, .from = at(190)}, pending_reply, at(190), at(190));
  CHECK(since_start(batcher.decide(at(190)).until) == 200);
  CHECK(batcher.decide(at(200)).partial);
}

namespace {

struct Schedule {
  std::vector<BatcherEvent> events{start};
  Time slowest = 0;  ///< the longest claim
  int tokens = 0;
  int notifications = 0;
  int extras = 0;  ///< abandoned batches and reconnects, each of which costs some polls
};

Schedule random_schedule(std::mt19937_64& random) {
  const auto below = [&](std::uint64_t n) { return static_cast<Time>(random() % n); };
  Schedule schedule;
  schedule.slowest = below(3) == 0 ? 0 : below(60);
  const auto gap = static_cast<std::uint64_t>(1 + below(2000));
  const auto count = below(60);
  Time time = 0;
  for (Time i = 0; i < count; ++i) {
    time += below(4) == 0 ? 0 : below(gap);
    BatcherEvent event{time, static_cast<int>(below(5) == 0 ? below(20) : below(3)), BatcherEvent::notified};
    if (below(3) == 0) event.kind = BatcherEvent::silent;
    if (below(25) == 0) event.kind = BatcherEvent::abandoned;
    if (below(40) == 0) event.kind = BatcherEvent::connected;
    schedule.tokens += event.tokens;
    schedule.notifications += event.kind == BatcherEvent::notified ? 1 : 0;
    schedule.extras += event.kind == BatcherEvent::abandoned || event.kind == BatcherEvent::connected ? 1 : 0;
    schedule.events.push_back(event);
  }
  return schedule;
}

/// The time that claims may add: one claim for each batch, abandoned batch and reconnect, and the pause
/// before.
Time slack(const Schedule& schedule, int tokens) {
  return (tokens / limit + 2 * schedule.extras + 4) * schedule.slowest;
}

/// The first token that was claimed too late; -1 if there is none.
int first_late(const Schedule& schedule, const Play& play) {
  for (std::size_t i = 0; i < play.left().size(); ++i) {
    const auto& token = play.left()[i];
    if (token.left - token.arrived > timeout + poll_interval + slack(schedule, schedule.tokens))
      return static_cast<int>(i);
  }
  return -1;
}

/// The first token that could have been claimed in a full batch after a notification, and was not; -1 if
/// there is none. A claim already running at that time may have taken other tokens without it.
int first_held_back(const Schedule& schedule, const Play& play) {
  int arrived = 0;
  for (const auto& event : schedule.events) {
    arrived += event.tokens;
    if (event.kind != BatcherEvent::notified) continue;
    const auto gone =
        static_cast<int>(std::count_if(play.left().begin(), play.left().end(),
                                       [&](const Token& token) { return token.claimed <= event.time; }));
    const auto full = (arrived - gone) / limit * limit;
    for (int i = gone; i < gone + full; ++i) {
      if (play.left()[static_cast<std::size_t>(i)].left > event.time + slack(schedule, arrived - gone))
        return i;
    }
  }
  return -1;
}

}  // namespace

TEST_CASE("with random events tokens are claimed in time, full batches at once, and without needless polls") {
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    const auto schedule = random_schedule(random);
    Play play(schedule.events,
              [&] { return static_cast<Time>(random() % static_cast<std::uint64_t>(schedule.slowest + 1)); });
    const auto end =
        schedule.events.back().time + timeout + 2 * poll_interval + slack(schedule, schedule.tokens) + 1;
    play.until(end);
    REQUIRE(play.fault() == "");
    REQUIRE(play.waiting() == 0);
    REQUIRE(static_cast<int>(play.left().size()) == schedule.tokens);
    REQUIRE(first_late(schedule, play) == -1);
    REQUIRE(first_held_back(schedule, play) == -1);
    const auto batches =
        std::count_if(play.polls().begin(), play.polls().end(), [](const Poll& l) { return l.taken > 0; });
    // One poll per notification and interval; each batch takes one, and its acknowledgement one.
    const auto most = schedule.notifications + end / poll_interval + 2 * (batches + schedule.extras) + 2;
    REQUIRE(static_cast<Time>(play.polls().size()) <= most);
  }
}

TEST_CASE("a claim may take several full lines, and takes fewer at once if there are fewer") {
  consumer::Batcher batcher(
      {.batch_timeout = 5s, .poll_interval = 1s, .line_limit = 10, .lines_per_claim = 4});
  const TimePoint began(1h);
  batcher.connected();
  auto decision = batcher.decide(began);
  CHECK(decision.limit == 40);
  // The reply shows that the queue is drained: the limit is the maximum again.
  batcher.claimed(decision, {.lease = claim::Lease{1, 1}, .last = 35}, began, began);
  decision = batcher.decide(began);
  CHECK_FALSE(decision.partial);
  CHECK(decision.limit == 40);

  // 25 tokens wait: two full lines are claimed at once, the rest at its timeout, counted from the first poll.
  batcher.claimed(decision, {.lease = {}, .pending = 25, .last = 60}, began, began);
  decision = batcher.decide(began);
  REQUIRE(decision.poll);
  CHECK_FALSE(decision.partial);
  CHECK(decision.limit == 20);
  batcher.claimed(decision, {.lease = claim::Lease{2, 1}, .last = 55, .more = true}, began + 1s, began + 1s);
  decision = batcher.decide(began + 1s);
  CHECK(decision.limit == 40);
  batcher.claimed(decision, {.lease = {}, .pending = 5, .last = 60}, began + 1s, began + 1s);
  CHECK_FALSE(batcher.decide(began + 1s + 1ms).partial);
  CHECK(batcher.decide(began + 5s).partial);
}

TEST_CASE("a claim takes whole lines, of at most the ten thousand tokens that it reads") {
  const auto limit = [](int line_limit, int lines) {
    return consumer::Batcher(
               {.batch_timeout = 5s, .poll_interval = 1s, .line_limit = line_limit, .lines_per_claim = lines})
        .decide(TimePoint())
        .limit;
  };
  CHECK(limit(10, 1) == 10);
  CHECK(limit(10, 1'000) == 10'000);
  CHECK(limit(10, 10'000) == 10'000);
  CHECK(limit(3'000, 10) == 9'000);
  CHECK(limit(10'000, 10) == 10'000);
}

}  // namespace mailroom::test::batcher_test
