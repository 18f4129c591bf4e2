// What became of a token, concluded from facts alone.

#include "audit/fate.hpp"

#include "support/catch.hpp"

using namespace mailroom;

namespace {

constexpr std::int64_t token = 51;

BatchRecord batch(std::int64_t id, int size, int emitted) {
  return {.id = id,
          .queue = "mailroom",
          .tokens = {{token, token + 1}},
          .size = size,
          .claimed_at = id * 1000,
          .emitted_at = id * 1000 + 5,
          .emitted = emitted};
}

BatchRecord open_batch(std::int64_t id) {
  auto open = batch(id, 3, 0);
  open.emitted_at.reset();
  return open;
}

BatchRecord set_aside_batch(std::int64_t id) {
  auto set_aside = open_batch(id);
  set_aside.attempts = 20;
  set_aside.set_aside_at = id * 1000 + 5;
  return set_aside;
}

BatchRecord at_attempt(BatchRecord record, int attempts) {
  record.attempts = attempts;
  return record;
}

BatchRecord without(BatchRecord record, std::int64_t left_out) {
  record.left_out = {{left_out, left_out + 1}};
  return record;
}

QueueStand above(std::int64_t cursor = 40) {
  return {.queue = "mailroom", .cursor = cursor, .records_complete = true};
}

QueueStand below(std::optional<Passing> passing = std::nullopt) {
  return {.queue = "mailroom", .cursor = 60, .records_complete = true, .passing = passing};
}

QueueStand in_hole() {
  return {.queue = "mailroom", .cursor = 60, .in_hole = true, .records_complete = true};
}

QueueStand unrecorded() {
  return {.queue = "mailroom", .cursor = 60, .passing = Passing{.batch = 9, .expired = 4}};
}

TokenFacts facts(const std::string& state, std::vector<BatchRecord> batches, std::vector<QueueStand> queues) {
  return {.id = token, .state = state, .batches = std::move(batches), .queues = std::move(queues)};
}

Operation forward_move() {
  return {.id = 3, .kind = "rewind", .queue = "mailroom", .tokens = {{45, 56}}, .is_forward = true};
}

}  // namespace

TEST_CASE("a token that is in batches was handed on, or was not, as far as their counts tell") {
  struct Case {
    const char* name;
    std::vector<BatchRecord> batches;
    Outcome outcome;
    int times;
    int maybe;
    std::int64_t told_by;
  };
  const std::vector<Case> cases{
      {"all of its batch went out", {batch(12, 3, 3)}, Outcome::handed_on, 1, 0, 12},
      {"twice", {batch(12, 3, 3), batch(14, 1, 1)}, Outcome::handed_on, 2, 0, 14},
      {"others of its batch were left out", {without(batch(12, 3, 2), 52)}, Outcome::handed_on, 1, 0, 12},
      {"a record that does not say which", {batch(12, 3, 2)}, Outcome::maybe_handed_on, 0, 1, 12},
      {"once for certain, then maybe", {batch(12, 3, 3), batch(14, 3, 2)}, Outcome::handed_on, 1, 1, 14},
      {"it was left out", {without(batch(12, 3, 2), token)}, Outcome::left_out, 0, 0, 12},
      {"left out the second time",
       {at_attempt(without(batch(12, 3, 2), token), 2)},
       Outcome::maybe_handed_on,
       0,
       1,
       12},
      {"all the second time", {at_attempt(batch(12, 3, 3), 2)}, Outcome::handed_on, 1, 0, 12},
      {"leased", {open_batch(12)}, Outcome::in_open_batch, 0, 0, 12},
      {"given up", {set_aside_batch(12)}, Outcome::set_aside, 0, 0, 12},
      {"left out, then leased",
       {without(batch(12, 3, 2), token), open_batch(14)},
       Outcome::in_open_batch,
       0,
       0,
       14},
      {"handed on, then given up", {batch(12, 3, 3), set_aside_batch(14)}, Outcome::handed_on, 1, 0, 12},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    const auto fate = judge_fate(facts("due", c.batches, {below()}));
    CHECK(outcome_name(fate.outcome) == std::string(outcome_name(c.outcome)));
    CHECK(fate.times == c.times);
    CHECK(fate.maybe == c.maybe);
    REQUIRE(fate.batch);
    CHECK(fate.batch->id == c.told_by);
    CHECK_FALSE(fate.next);
  }
}

TEST_CASE("why a token was left out, as far as the counts of its batch tell") {
  auto record = without(batch(12, 3, 2), token);
  record.skipped_status = 1;
  const auto alone = judge_fate(facts("due", {record}, {below()}));
  CHECK(alone.reason == "wrong status");
  CHECK(alone.reason_certain);
  record.skipped_expired = 4;
  const auto one_of_two = judge_fate(facts("expired", {record}, {below()}));
  CHECK(one_of_two.reason == "expired");
  CHECK_FALSE(one_of_two.reason_certain);
}

TEST_CASE("the last hand-on is the latest acknowledgement, not the largest id") {
  auto late = batch(12, 3, 3);
  late.emitted_at = 99'000;
  const auto fate = judge_fate(facts("due", {late, batch(14, 3, 3)}, {below()}));
  CHECK(fate.times == 2);
  CHECK(fate.batch->id == 12);
}

TEST_CASE("the counts of a batch that a rewind cut are of more than its tokens") {
  auto cut = facts("due", {batch(12, 3, 3)}, {below()});
  cut.operations = {{.id = 1, .kind = "rewind", .cut_batches = {11, 12}}};
  CHECK(judge_fate(cut).outcome == Outcome::maybe_handed_on);
  cut.operations.front().cut_batches = {11};
  CHECK(judge_fate(cut).outcome == Outcome::handed_on);
}

TEST_CASE("a token that was handed on may be on its way again") {
  struct Case {
    const char* name;
    std::string state;
    std::vector<BatchRecord> batches;
    QueueStand stand;
    std::optional<Outcome> next;
  };
  const std::vector<Case> cases{
      {"done", "due", {batch(12, 3, 3)}, below(), std::nullopt},
      {"leased again", "due", {batch(12, 3, 3), open_batch(14)}, below(), Outcome::in_open_batch},
      {"replayed", "due", {batch(12, 3, 3)}, in_hole(), Outcome::waiting_again},
      {"rewound", "due", {batch(12, 3, 3)}, above(), Outcome::waiting},
      {"rewound, but consumed", "consumed", {batch(12, 3, 3)}, above(), std::nullopt},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    const auto fate = judge_fate(facts(c.state, c.batches, {c.stand}));
    CHECK(fate.outcome == Outcome::handed_on);
    CHECK(fate.next == c.next);
  }
  auto other = above(0);
  other.queue = "second";
  CHECK_FALSE(judge_fate(facts("due", {batch(12, 3, 3)}, {below(), other})).next);
}

TEST_CASE("a token that is in no batch has a reason") {
  struct Case {
    const char* name;
    std::string state;
    QueueStand stand;
    Outcome outcome;
    std::string reason;
    bool certain;
  };
  const std::vector<Case> cases{
      {"above the cursor", "due", above(), Outcome::waiting, "", false},
      {"the cursor itself is passed", "due", above(token), Outcome::unexplained, "", false},
      {"above, but expired", "expired", above(), Outcome::waiting_not_due, "", false},
      {"replayed or committed late", "due", in_hole(), Outcome::waiting_again, "", false},
      {"the same, but consumed", "consumed", in_hole(), Outcome::waiting_not_due, "", false},
      {"one reason recorded", "expired", below(Passing{.batch = 9, .expired = 2}), Outcome::passed_over,
       "expired", true},
      {"a reason that the token's state no longer shows", "wrong status",
       below(Passing{.batch = 9, .expired = 1}), Outcome::passed_over, "expired", true},
      {"several, one of which fits", "consumed", below(Passing{.batch = 9, .expired = 1, .consumed = 1}),
       Outcome::passed_over, "consumed", false},
      {"several, none of which fits", "due", below(Passing{.batch = 9, .expired = 1, .consumed = 1}),
       Outcome::passed_over, "", false},
      {"nothing was passed over then", "due", below(Passing{.batch = 9}), Outcome::unexplained, "", false},
      {"no claim passed it", "due", below(), Outcome::unexplained, "", false},
      {"older than the records", "expired", unrecorded(), Outcome::not_recorded, "", false},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    const auto fate = judge_fate(facts(c.state, {}, {c.stand}));
    CHECK(outcome_name(fate.outcome) == std::string(outcome_name(c.outcome)));
    CHECK(fate.reason == c.reason);
    CHECK(fate.reason_certain == c.certain);
    CHECK(fate.times == 0);
  }
}

TEST_CASE("an operator who moved the cursor past a token is the reason, whatever its state") {
  auto passed = facts("due", {}, {below(Passing{.batch = 9})});
  passed.operations = {forward_move()};
  const auto fate = judge_fate(passed);
  CHECK(fate.outcome == Outcome::passed_by);
  REQUIRE(fate.operation);
  CHECK(fate.operation->id == 3);

  passed.operations.front().queue = "second";
  CHECK(judge_fate(passed).outcome == Outcome::unexplained);
  passed.operations = {forward_move()};
  passed.operations.front().tokens = {{45, token}};
  CHECK(judge_fate(passed).outcome == Outcome::unexplained);
  passed.operations = {forward_move()};
  passed.operations.front().is_forward = false;
  CHECK(judge_fate(passed).outcome == Outcome::unexplained);
}

TEST_CASE("of several queues one where the token is still to come outweighs one that has passed it") {
  auto second = above(0);
  second.queue = "second";
  const auto fate = judge_fate(facts("due", {}, {below(Passing{.batch = 9, .expired = 1}), second}));
  CHECK(fate.outcome == Outcome::waiting);
  CHECK(fate.queue == "second");
}

TEST_CASE("a token that was removed waits nowhere") {
  auto removed = facts("", {}, {above()});
  removed.exists = false;
  CHECK(judge_fate(removed).outcome == Outcome::unexplained);
  removed.batches = {batch(12, 3, 3)};
  const auto fate = judge_fate(removed);
  CHECK(fate.outcome == Outcome::handed_on);
  CHECK_FALSE(fate.next);
}
