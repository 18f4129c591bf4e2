// The status of a token, derived from facts alone.

#include "audit/token_status.hpp"

#include "support/catch.hpp"

namespace mailroom::test::token_status_test {

using namespace std::chrono_literals;

namespace {

constexpr std::int64_t token = 51;

queue::BatchRecord batch(std::int64_t id, int size, int emitted) {
  return {.id = id,
          .queue = "mailroom",
          .tokens = {{token, token + 1}},
          .size = size,
          .claimed_at = Moment(id * 1ms),
          .emitted_at = Moment(id * 1ms + 5us),
          .emitted = emitted};
}

queue::BatchRecord open_batch(std::int64_t id) {
  auto open = batch(id, 3, 0);
  open.emitted_at.reset();
  return open;
}

queue::BatchRecord dead_batch(std::int64_t id) {
  auto dead = open_batch(id);
  dead.attempts = 20;
  dead.dead_at = Moment(id * 1ms + 5us);
  return dead;
}

queue::BatchRecord at_attempt(queue::BatchRecord record, int attempts) {
  record.attempts = attempts;
  return record;
}

queue::BatchRecord without(queue::BatchRecord record, std::int64_t skipped_ids) {
  record.skipped_ids = {{skipped_ids, skipped_ids + 1}};
  return record;
}

audit::TokenPosition above(std::int64_t cursor = 40) {
  return {.queue = "mailroom", .cursor = cursor, .records_complete = true};
}

audit::TokenPosition below(std::optional<queue::BatchRecord> skip = std::nullopt) {
  return {.queue = "mailroom", .cursor = 60, .records_complete = true, .skip = skip};
}

audit::TokenPosition in_replay() {
  return {.queue = "mailroom", .cursor = 60, .gap = fate::TokenPlace::in_replay, .records_complete = true};
}

audit::TokenPosition in_gap() {
  return {.queue = "mailroom", .cursor = 60, .gap = fate::TokenPlace::in_gap, .records_complete = true};
}

audit::TokenPosition unrecorded() {
  return {.queue = "mailroom", .cursor = 60, .skip = queue::BatchRecord{.id = 9, .skipped = {.expired = 4}}};
}

audit::TokenFacts facts(const std::string& state, std::vector<queue::BatchRecord> batches,
                        std::vector<audit::TokenPosition> queues) {
  audit::TokenFacts facts{{.id = token, .state = state}};
  facts.batches = std::move(batches);
  facts.queues = std::move(queues);
  return facts;
}

feed::Operation forward_move() {
  return {.id = 3,
          .kind = feed::EventKind::rewound,
          .queue = "mailroom",
          .tokens = {{45, 56}},
          .is_forward = true};
}

feed::Operation replay_at(std::chrono::milliseconds time) {
  return {.id = 4,
          .at = Moment(time),
          .kind = feed::EventKind::replayed,
          .queue = "mailroom",
          .tokens = {{45, 56}}};
}

}  // namespace

TEST_CASE("a token in batches was emitted or skipped, as far as the counts of the batches show") {
  struct Case {
    const char* name;
    std::vector<queue::BatchRecord> batches;
    fate::Outcome outcome;
    int times;
    int maybe;
    std::int64_t told_by;
  };
  const std::vector<Case> cases{
      {"all of its batch was emitted", {batch(12, 3, 3)}, fate::Outcome::emitted, 1, 0, 12},
      {"twice", {batch(12, 3, 3), batch(14, 1, 1)}, fate::Outcome::emitted_again, 2, 0, 14},
      {"others of its batch were skipped", {without(batch(12, 3, 2), 52)}, fate::Outcome::emitted, 1, 0, 12},
      {"a record that does not say which", {batch(12, 3, 2)}, fate::Outcome::maybe_emitted, 0, 1, 12},
      {"once for certain, then maybe",
       {batch(12, 3, 3), batch(14, 3, 2)},
       fate::Outcome::emitted_again,
       1,
       1,
       14},
      {"it was skipped", {without(batch(12, 3, 2), token)}, fate::Outcome::skipped, 0, 0, 12},
      {"skipped the second time",
       {at_attempt(without(batch(12, 3, 2), token), 2)},
       fate::Outcome::maybe_emitted,
       0,
       1,
       12},
      {"all the second time", {at_attempt(batch(12, 3, 3), 2)}, fate::Outcome::emitted_again, 1, 0, 12},
      {"leased", {open_batch(12)}, fate::Outcome::leased, 0, 0, 12},
      {"dead", {dead_batch(12)}, fate::Outcome::dead, 0, 0, 12},
      {"skipped, then leased",
       {without(batch(12, 3, 2), token), open_batch(14)},
       fate::Outcome::leased,
       0,
       0,
       14},
      {"emitted, then dead", {batch(12, 3, 3), dead_batch(14)}, fate::Outcome::emitted, 1, 0, 12},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    auto token_facts = facts("due", c.batches, {below()});
    token_facts.operations = {replay_at(13ms)};
    const auto status = audit::judge_token(token_facts);
    CHECK(fate::outcome_name(status.outcome) == std::string(fate::outcome_name(c.outcome)));
    CHECK(status.times == c.times);
    CHECK(status.maybe == c.maybe);
    REQUIRE(status.batch);
    CHECK(status.batch->id == c.told_by);
    CHECK_FALSE(status.next);
  }
}

TEST_CASE("why a token was skipped, as far as the counts of its batch show") {
  auto record = without(batch(12, 3, 2), token);
  record.skipped.wrong_status = 1;
  const auto alone = audit::judge_token(facts("due", {record}, {below()}));
  CHECK(alone.reason == "wrong status");
  CHECK(alone.reason_certain);
  record.skipped.expired = 4;
  const auto one_of_two = audit::judge_token(facts("expired", {record}, {below()}));
  CHECK(one_of_two.reason == "expired");
  CHECK_FALSE(one_of_two.reason_certain);
}

TEST_CASE("the last emission is the latest acknowledgement, not the largest id") {
  auto late = batch(12, 3, 3);
  late.emitted_at = Moment(99ms);
  auto both = facts("due", {late, batch(14, 3, 3)}, {below()});
  both.operations = {replay_at(99ms)};
  const auto status = audit::judge_token(both);
  CHECK(status.times == 2);
  CHECK(status.batch->id == 12);
}

TEST_CASE("a repetition that no operation asked for is unexplained") {
  auto twice = facts("due", {batch(1000, 3, 3), batch(5000, 3, 3)}, {below()});
  const auto outcome_after = [&](const feed::Operation& operation) {
    twice.operations = {operation};
    return audit::judge_token(twice).outcome;
  };
  CHECK(outcome_after(replay_at(3s)) == fate::Outcome::emitted_again);
  auto created = replay_at(3s);
  created.kind = feed::EventKind::queue_created;
  created.tokens.clear();
  CHECK(outcome_after(created) == fate::Outcome::emitted_again);
  auto of_others = replay_at(3s);
  of_others.tokens = {{45, token}};
  CHECK(outcome_after(of_others) == fate::Outcome::unexplained);
  CHECK(outcome_after(replay_at(7s)) == fate::Outcome::unexplained);
  CHECK(outcome_after(forward_move()) == fate::Outcome::unexplained);
  const auto status = audit::judge_token(twice);
  CHECK(status.fault == fate::Fault::unasked);
  CHECK(status.times == 2);
  twice.batches[1].queue = "second";
  CHECK(audit::judge_token(twice).outcome == fate::Outcome::emitted_again);
}

TEST_CASE("the counts of a batch that a rewind cut include more than its tokens") {
  auto cut = facts("due", {batch(12, 3, 3)}, {below()});
  cut.operations = {{.id = 1, .kind = feed::EventKind::rewound, .cut_batches = {11, 12}}};
  CHECK(audit::judge_token(cut).outcome == fate::Outcome::maybe_emitted);
  cut.operations.front().cut_batches = {11};
  CHECK(audit::judge_token(cut).outcome == fate::Outcome::emitted);
}

TEST_CASE("a token that was emitted may be queued again") {
  struct Case {
    const char* name;
    std::string state;
    std::vector<queue::BatchRecord> batches;
    audit::TokenPosition position;
    std::optional<fate::Outcome> next;
  };
  const std::vector<Case> cases{
      {"done", "due", {batch(12, 3, 3)}, below(), std::nullopt},
      {"leased again", "due", {batch(12, 3, 3), open_batch(14)}, below(), fate::Outcome::leased},
      {"replayed", "due", {batch(12, 3, 3)}, in_replay(), fate::Outcome::in_replay},
      {"rewound", "due", {batch(12, 3, 3)}, above(), fate::Outcome::waiting},
      {"rewound, but consumed", "consumed", {batch(12, 3, 3)}, above(), std::nullopt},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    const auto status = audit::judge_token(facts(c.state, c.batches, {c.position}));
    CHECK(status.outcome == fate::Outcome::emitted);
    CHECK(status.next == c.next);
  }
  auto other = above(0);
  other.queue = "second";
  CHECK_FALSE(audit::judge_token(facts("due", {batch(12, 3, 3)}, {below(), other})).next);
}

TEST_CASE("a token that is in no batch has a reason") {
  struct Case {
    const char* name;
    std::string state;
    audit::TokenPosition position;
    fate::Outcome outcome;
    std::string reason;
    bool certain;
  };
  const std::vector<Case> cases{
      {"above the cursor", "due", above(), fate::Outcome::waiting, "", false},
      {"the cursor itself is passed", "due", above(token), fate::Outcome::unexplained, "", false},
      {"above, but expired", "expired", above(), fate::Outcome::skipped, "expired", true},
      {"above, and of a suspended account", "wrong status", above(), fate::Outcome::waiting, "wrong status",
       false},
      {"replayed", "due", in_replay(), fate::Outcome::in_replay, "", false},
      {"committed late", "due", in_gap(), fate::Outcome::in_gap, "", false},
      {"the same, but consumed", "consumed", in_gap(), fate::Outcome::skipped, "consumed", true},
      {"one reason recorded", "expired", below(queue::BatchRecord{.id = 9, .skipped = {.expired = 2}}),
       fate::Outcome::skipped, "expired", true},
      {"a reason that the token's state no longer shows", "wrong status",
       below(queue::BatchRecord{.id = 9, .skipped = {.expired = 1}}), fate::Outcome::skipped, "expired",
       true},
      {"several, one of which fits", "consumed",
       below(queue::BatchRecord{.id = 9, .skipped = {.expired = 1, .consumed = 1}}), fate::Outcome::skipped,
       "consumed", false},
      {"several, none of which fits", "due",
       below(queue::BatchRecord{.id = 9, .skipped = {.expired = 1, .consumed = 1}}), fate::Outcome::skipped,
       "", false},
      {"nothing was skipped then", "due", below(queue::BatchRecord{.id = 9}), fate::Outcome::unexplained, "",
       false},
      {"no claim passed it", "due", below(), fate::Outcome::unexplained, "", false},
      {"older than the records", "expired", unrecorded(), fate::Outcome::not_recorded, "", false},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    const auto status = audit::judge_token(facts(c.state, {}, {c.position}));
    CHECK(fate::outcome_name(status.outcome) == std::string(fate::outcome_name(c.outcome)));
    CHECK(status.reason == c.reason);
    CHECK(status.reason_certain == c.certain);
    CHECK(status.times == 0);
  }
}

TEST_CASE("an operator's move of the cursor past a token is the reason, whatever the token's state") {
  auto passed = facts("due", {}, {below(queue::BatchRecord{.id = 9})});
  passed.operations = {forward_move()};
  const auto status = audit::judge_token(passed);
  CHECK(status.outcome == fate::Outcome::moved_past);
  REQUIRE(status.operation);
  CHECK(status.operation->id == 3);

  passed.operations.front().queue = "second";
  CHECK(audit::judge_token(passed).outcome == fate::Outcome::unexplained);
  passed.operations = {forward_move()};
  passed.operations.front().tokens = {{45, token}};
  CHECK(audit::judge_token(passed).outcome == fate::Outcome::unexplained);
  passed.operations = {forward_move()};
  passed.operations.front().is_forward = false;
  CHECK(audit::judge_token(passed).outcome == fate::Outcome::unexplained);
}

TEST_CASE("with several queues, a queue where the token still waits outweighs one that has passed it") {
  auto second = above(0);
  second.queue = "second";
  const auto status = audit::judge_token(
      facts("due", {}, {below(queue::BatchRecord{.id = 9, .skipped = {.expired = 1}}), second}));
  CHECK(status.outcome == fate::Outcome::waiting);
  CHECK(status.queue == "second");
}

TEST_CASE("a token that was removed waits in no queue") {
  auto removed = facts("", {}, {above()});
  removed.exists = false;
  CHECK(audit::judge_token(removed).outcome == fate::Outcome::unexplained);
  removed.batches = {batch(12, 3, 3)};
  const auto status = audit::judge_token(removed);
  CHECK(status.outcome == fate::Outcome::emitted);
  CHECK_FALSE(status.next);
}

}  // namespace mailroom::test::token_status_test
