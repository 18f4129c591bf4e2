// What the feed decides without a database: from when on consumption is read, which events a batch's row
// tells of, which events a filter wants.

#include "feed/batch_follower.hpp"
#include "feed/consumption_follower.hpp"
#include "feed/event_filter.hpp"
#include "support/catch.hpp"

using namespace mailroom;

namespace {

ServerLook look_at(std::int64_t now, RunningTransactions running = {}, bool hidden = false) {
  ServerLook look;
  look.now = now;
  look.running = std::move(running);
  look.some_are_hidden = hidden;
  return look;
}

ConsumptionFollower started(const ServerLook& look) {
  ConsumptionFollower follower(10);
  follower.start(look);
  follower.read();
  return follower;
}

std::int64_t next_floor(ConsumptionFollower& follower, const ServerLook& look) {
  follower.observe(look);
  const auto floor = follower.floor();
  follower.read();
  return floor;
}

}  // namespace

TEST_CASE("consumption is read from a while before the look before on") {
  auto follower = started(look_at(10'000));
  CHECK(next_floor(follower, look_at(10'001)) == 9'990);
  CHECK(next_floor(follower, look_at(10'030)) == 9'991);
  CHECK(next_floor(follower, look_at(10'031)) == 10'020);
}

TEST_CASE("the past of a long transaction is read once, when it has gone") {
  auto follower = started(look_at(10'000));
  CHECK(next_floor(follower, look_at(10'001, {{"a", 9'700}, {"b", 9'950}})) == 9'990);
  CHECK_FALSE(follower.owes_a_read());
  CHECK(next_floor(follower, look_at(10'002, {{"b", 9'950}})) == 9'690);
  CHECK(next_floor(follower, look_at(10'003, {{"b", 9'950}})) == 9'992);
  follower.observe(look_at(10'004));
  CHECK(follower.owes_a_read());
  CHECK(follower.floor() == 9'940);
}

TEST_CASE("what a snapshot that could not be read was owed is owed to the next") {
  auto follower = started(look_at(10'000, {{"a", 9'800}}));
  follower.observe(look_at(10'001));
  follower.observe(look_at(10'002));
  CHECK(follower.floor() == 9'790);
  follower.read();
  CHECK(next_floor(follower, look_at(10'003)) == 9'992);
}

TEST_CASE("nothing is read from before the start, which was noted then") {
  ConsumptionFollower follower(10);
  follower.start(look_at(10'000, {{"a", 9'000}}));
  CHECK(follower.floor() == 8'990);
  follower.read();
  CHECK(next_floor(follower, look_at(10'001, {{"a", 9'000}, {"prepared 1", 5'000}})) == 9'990);
  CHECK(next_floor(follower, look_at(10'002, {{"a", 9'000}})) == 8'990);
}

TEST_CASE("where transactions are hidden, five minutes are read every five seconds") {
  auto follower = started(look_at(10'000, {}, true));
  CHECK(next_floor(follower, look_at(10'004, {}, true)) == 9'990);
  CHECK(next_floor(follower, look_at(10'005, {}, true)) == 9'705);
  CHECK(next_floor(follower, look_at(10'006, {}, true)) == 9'995);
}

TEST_CASE("a consumption is told once as long as it can come up again") {
  auto follower = started(look_at(10'000, {{"a", 9'900}}));
  CHECK(follower.first_time(640, 9'995));
  CHECK(follower.first_time(641, 9'995));
  CHECK_FALSE(follower.first_time(640, 9'995));
  CHECK(follower.is_new(639));
  // The transaction that began before may still be read up for.
  next_floor(follower, look_at(10'300, {{"a", 9'900}}));
  CHECK_FALSE(follower.is_new(641));
  next_floor(follower, look_at(10'301));
  next_floor(follower, look_at(10'302));
  CHECK(follower.is_new(641));
}

namespace {

BatchRow leased(std::int64_t id, int attempts = 1) {
  BatchRow row;
  row.id = id;
  row.attempts = attempts;
  row.claimed_us = 1'000 * attempts;
  row.holds_ids = true;
  return row;
}

BatchRow acknowledged(BatchRow row, std::int64_t emitted, std::int64_t skipped = 0) {
  row.emitted_us = 90'000;
  row.emitted = emitted;
  row.skipped = skipped;
  return row;
}

std::vector<std::string> words(const std::vector<EventKey>& events) {
  std::vector<std::string> all;
  for (const auto& event : events)
    all.emplace_back(word_text(event.word));
  return all;
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("a batch is told of when it is acknowledged, and its lease is not") {
  BatchFollower follower;
  CHECK(words(follower.saw({leased(1)})) == Words{});
  CHECK(follower.open_ids() == std::vector<std::int64_t>{1});
  CHECK(words(follower.saw({leased(1)})) == Words{});
  CHECK(words(follower.saw({acknowledged(leased(1), 3)})) == Words{"emitted"});
  CHECK(follower.open_ids().empty());
}

TEST_CASE("a batch that is handed out again, and again, is told of each time") {
  BatchFollower follower;
  follower.start({leased(1, 2)});
  CHECK(words(follower.saw({leased(1, 2)})) == Words{});
  CHECK(words(follower.saw({leased(1, 3)})) == Words{"taken-over"});
  CHECK(words(follower.saw({acknowledged(leased(1, 4), 3)})) == Words{"taken-over", "emitted"});
  auto given_up = leased(2, 20);
  given_up.set_aside_us = 95'000;
  CHECK(words(follower.saw({given_up})) == Words{"taken-over", "set-aside"});
  CHECK(follower.open_ids().empty());
}

TEST_CASE("a record of passed-over tokens is an event, a mere state of the queue is none") {
  auto passed_over = acknowledged(leased(1), 0, 5);
  passed_over.holds_ids = false;
  CHECK(words(batch_events(passed_over, 1)) == Words{"passed-over"});
  auto state = acknowledged(leased(2), 0);
  state.holds_ids = false;
  CHECK(words(batch_events(state, 1)) == Words{});
  CHECK(words(batch_events(acknowledged(leased(3), 2, 5), 1)) == Words{"emitted"});
}

TEST_CASE("a filter wants what all of its parts want") {
  Event created;
  created.word = EventWord::created;
  created.state = "due";
  created.token = 7;
  created.account = 3;
  created.action = "activation";
  CHECK(EventFilter{}.wants(created));
  EventFilter filter;
  filter.action = "activation";
  filter.accounts = {2, 3};
  filter.states = {"due", "emitted"};
  CHECK(filter.wants(created));
  filter.from_token = 8;
  CHECK_FALSE(filter.wants(created));
  filter = {.action = "password_recovery", .accounts = {}, .states = {}, .from_token = 0};
  CHECK_FALSE(filter.wants(created));
  filter = {.action = {}, .accounts = {4}, .states = {}, .from_token = 0};
  CHECK_FALSE(filter.wants(created));
  filter = {.action = {}, .accounts = {}, .states = {"expired"}, .from_token = 0};
  CHECK_FALSE(filter.wants(created));
  CHECK(filter.may_want(EventWord::created));
}

TEST_CASE("created asks for every token when it is created, and for nothing that comes of it later") {
  EventFilter filter;
  filter.states = {"created"};
  Event event;
  event.word = EventWord::created;
  for (const auto* state : {"due", "expired", "consumed", "wrong-status"}) {
    event.state = state;
    CHECK(filter.wants(event));
  }
  event.word = EventWord::consumed;
  event.state = "consumed";
  CHECK_FALSE(filter.wants(event));
}

TEST_CASE("a filter of tokens wants a batch that holds one, and of operations those of its accounts") {
  EventFilter filter;
  filter.accounts = {3};
  Event batch;
  batch.word = EventWord::emitted;
  batch.state = "emitted";
  batch.batch = 1;
  batch.matches.emplace();
  CHECK_FALSE(filter.wants(batch));
  batch.matches->push_back(5);
  CHECK(filter.wants(batch));
  CHECK_FALSE(filter.may_want(EventWord::passed_over));
  CHECK_FALSE(filter.may_want(EventWord::rewound));
  CHECK(filter.may_want(EventWord::suspended));
  filter.action = "activation";
  CHECK_FALSE(filter.may_want(EventWord::suspended));
}

TEST_CASE("every word of an event has a text, a source, and a state that can be asked for") {
  for (int i = 0; i <= static_cast<int>(EventWord::consumed); ++i) {
    const auto word = static_cast<EventWord>(i);
    const std::string text(word_text(word));
    const auto& states = state_words();
    CHECK(std::count(states.begin(), states.end(), text) == 1);
  }
}
