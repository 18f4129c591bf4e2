// The judge of what became of a token, and its words.

#include "fate/fate.hpp"

#include <fmt/format.h>
#include <random>
#include <set>

#include "support/catch.hpp"

namespace mailroom::test::fate_test {

namespace {

using State = fate::HoldingBatch::State;

/// `outcome`, or `outcome: fault`, with what follows.
std::string fate_of(const fate::Evidence& evidence) {
  const auto fate = fate::judge_fate(evidence);
  auto text = std::string(fate::outcome_name(fate.outcome));
  if (fate.fault != fate::Fault::none) text += fmt::format(": {}", fate::fault_text(fate.fault));
  if (fate.next) text += fmt::format(", then {}", fate::outcome_name(*fate.next));
  return text;
}

fate::HoldingBatch emitted(int attempts = 1) {
  return {.state = State::emitted, .attempts = attempts, .ended_at = 5};
}

fate::HoldingBatch skipped(int attempts = 1) {
  return {.state = State::emitted, .attempts = attempts, .ended_at = 6, .is_skipped = true};
}

constexpr fate::HoldingBatch open{};
constexpr fate::HoldingBatch dead{.state = State::dead, .attempts = 20};

}  // namespace

TEST_CASE("each outcome has a word of its own") {
  std::set<std::string> words;
  for (std::size_t i = 0; i < fate::outcome_count; ++i) {
    const auto outcome = static_cast<fate::Outcome>(i);
    words.insert(fate::outcome_name(outcome));
    CHECK(fate::find_outcome(fate::outcome_name(outcome)) == outcome);
  }
  CHECK(words.size() == fate::outcome_count);
  CHECK(fate::outcome_text(fate::Outcome::emitted_again) == "emitted again");
  CHECK_FALSE(fate::find_outcome("in flight"));
}

TEST_CASE("batches decide, the last acknowledged one of those that emitted the token") {
  auto unsure = emitted();
  unsure.is_certain = false;
  CHECK(fate_of({.batches = {emitted()}}) == "emitted");
  CHECK(fate_of({.batches = {emitted(2)}}) == "emitted_again");
  CHECK(fate_of({.batches = {emitted(), emitted()}, .repetitions = {{.operation = 3, .at = 5}}}) ==
        "emitted_again");
  CHECK(fate_of({.batches = {unsure}}) == "maybe_emitted");
  CHECK(fate_of({.batches = {unsure, emitted()}}) == "emitted_again");
  CHECK(fate_of({.batches = {skipped()}}) == "skipped");
  CHECK(fate_of({.batches = {skipped(2)}}) == "maybe_emitted");
  CHECK(fate_of({.batches = {emitted(), skipped()}}) == "emitted");
  CHECK(fate_of({.batches = {emitted(), dead}}) == "emitted");
  CHECK(fate_of({.batches = {dead, skipped()}}) == "skipped");
  CHECK(fate_of({.batches = {skipped(), dead}}) == "dead");
  CHECK(fate_of({.batches = {dead}, .place = fate::TokenPlace::in_replay}) == "in_replay");
  CHECK(fate_of({.batches = {skipped(), open}}) == "leased");
  CHECK(fate::judge_fate({.batches = {skipped(), open}}).batch == 1);
}

TEST_CASE("what was emitted may be emitted again") {
  CHECK(fate_of({.batches = {emitted(), open}}) == "emitted, then leased");
  CHECK(fate_of({.batches = {emitted()}, .place = fate::TokenPlace::in_gap}) == "emitted, then in_gap");
  CHECK(fate_of({.batches = {emitted()}, .place = fate::TokenPlace::above_cursor}) ==
        "emitted, then waiting");
  CHECK(fate_of({.batches = {emitted()}, .place = fate::TokenPlace::above_cursor, .is_due = false}) ==
        "emitted");
  CHECK(fate_of({.place = fate::TokenPlace::above_cursor, .is_due = false}) == "waiting");
}

TEST_CASE("what was skipped since its message was cancelled is cancelled") {
  CHECK(fate_of({.place = fate::TokenPlace::above_cursor,
                 .is_due = false,
                 .is_cancelled = true,
                 .is_over = true}) == "cancelled, then waiting");
  CHECK(fate_of({.batches = {skipped()}, .is_cancelled = true}) == "cancelled");
  CHECK(fate_of({.is_cancelled = true, .was_unfit = true}) == "cancelled");
  // What left before keeps its outcome.
  CHECK(fate_of({.batches = {emitted()}, .is_cancelled = true}) == "emitted");
  CHECK(fate_of({.batches = {skipped(2)}, .is_cancelled = true}) == "maybe_emitted");
  CHECK(fate_of({.batches = {dead}, .is_cancelled = true}) == "dead");
  CHECK(fate_of({.batches = {open}, .is_cancelled = true, .is_over = true}) == "leased");
}

TEST_CASE("what is over before its queue comes to it is skipped") {
  for (const auto place :
       {fate::TokenPlace::above_cursor, fate::TokenPlace::in_gap, fate::TokenPlace::in_replay})
    CHECK(fate::judge_fate({.place = place, .is_due = false, .is_over = true}).outcome ==
          fate::Outcome::skipped);
  CHECK(fate_of({.place = fate::TokenPlace::above_cursor, .is_due = false, .is_over = true}) ==
        "skipped, then waiting");
  CHECK(fate_of(
            {.batches = {emitted()}, .place = fate::TokenPlace::in_gap, .is_due = false, .is_over = true}) ==
        "emitted");
  CHECK(fate_of({.batches = {open}, .is_due = false, .is_over = true}) == "leased");
}

TEST_CASE("the records of a batch may contradict each other") {
  auto shared = emitted(2);
  shared.is_shared = true;
  CHECK(fate::judge_fate({.batches = {shared}}).fault == fate::Fault::shared);
  const auto at = [](std::int64_t second) {
    return fate::HoldingBatch{
        .state = State::emitted, .leased_at = second * 1'000'000, .ended_at = second * 1'000'000};
  };
  const auto repeated = [&](std::vector<fate::Repetition> repetitions) {
    return fate::judge_fate({.batches = {at(10), at(20), at(30)}, .repetitions = std::move(repetitions)});
  };
  CHECK(repeated({}).fault == fate::Fault::unasked);
  CHECK(repeated({}).times == 3);
  CHECK(repeated({{.operation = 1, .at = 15'000'000}}).fault == fate::Fault::unasked);
  CHECK(repeated({{.operation = 1, .at = 15'000'000}, {.operation = 2, .at = 35'000'000}}).fault ==
        fate::Fault::unasked);
  const auto asked = repeated({{.operation = 1, .at = 15'000'000}, {.operation = 2, .at = 29'000'000}});
  CHECK(asked.outcome == fate::Outcome::emitted_again);
  CHECK(asked.asked_for_by == std::vector<std::int64_t>{1, 2});
  auto mailed = emitted();
  mailed.is_by_sender = true;
  CHECK(fate::judge_fate({.batches = {mailed}}).fault == fate::Fault::without_outcome);
  mailed.is_skipped = true;
  CHECK(fate_of({.batches = {mailed}}) == "skipped");
  mailed.attempts = 2;
  CHECK(fate_of({.batches = {mailed}}) == "maybe_emitted");
  auto lost = open;
  lost.is_out_of_reach = true;
  CHECK(fate::judge_fate({.batches = {lost}}).fault == fate::Fault::out_of_reach);
}

TEST_CASE("the last outcome of a delivery decides, unless the token was accepted before") {
  const auto delivered = [](fate::RecordedDelivery delivery, fate::TokenPlace place = fate::TokenPlace::none,
                            std::vector<fate::HoldingBatch> batches = {}) {
    return fate_of({.batches = std::move(batches), .place = place, .delivery = delivery});
  };
  CHECK(delivered({.last = fate::Outcome::rejected}) == "rejected");
  CHECK(delivered({.last = fate::Outcome::rejected, .was_accepted = true}) == "accepted");
  CHECK(delivered(
            {.last = fate::Outcome::accepted, .was_accepted = true, .reported = fate::Outcome::bounced}) ==
        "bounced");
  CHECK(delivered({.last = fate::Outcome::deferred,
                   .was_accepted = true,
                   .will_be_tried = true,
                   .reported = fate::Outcome::delivered},
                  fate::TokenPlace::none) == "delivered");
  CHECK(delivered({.last = fate::Outcome::rejected, .reported = fate::Outcome::complained}) == "rejected");
  CHECK(delivered({.last = fate::Outcome::rejected, .has_batch = false}) ==
        "unexplained: delivered, but no batch on record has it");
  CHECK(delivered({.last = fate::Outcome::cancelled}, fate::TokenPlace::in_replay) ==
        "cancelled, then in_replay");
  CHECK(delivered({.last = fate::Outcome::deferred, .will_be_tried = true}) == "deferred");
  CHECK(delivered({.last = fate::Outcome::deferred, .was_accepted = true, .will_be_tried = true}) ==
        "accepted");
  CHECK(delivered({.last = fate::Outcome::deferred}) ==
        "unexplained: deferred, but nothing will try it again");
  CHECK(delivered({.last = fate::Outcome::deferred}, fate::TokenPlace::none, {open}) == "leased");
  CHECK(delivered({.last = fate::Outcome::deferred, .was_accepted = true}, fate::TokenPlace::in_gap) ==
        "accepted, then in_gap");
}

TEST_CASE("why a token that the cursor has passed is in no batch") {
  CHECK(fate_of({}) == "unexplained: due when the cursor passed it, and in no batch");
  CHECK(fate_of({.was_unfit = true}) == "skipped");
  CHECK(fate_of({.is_recorded = false, .was_unfit = true}) == "not_recorded");
  CHECK(fate_of({.is_missed = true, .is_recorded = false}) ==
        "missed: created after the cursor had passed its id");
  CHECK(fate_of({.passed_by = fate::PassedBy::move, .is_missed = true}) == "moved_past");
  CHECK(fate_of({.passed_by = fate::PassedBy::untaken, .was_unfit = true}) == "not_taken");
  CHECK(fate_of({.passed_by = fate::PassedBy::nothing}) ==
        "unexplained: below the cursor, and no claim has passed it");
}

TEST_CASE("no evidence makes a token look sent that no batch has emitted, and none is judged twice") {
  std::mt19937 random(815);
  const auto coin = [&] { return random() % 2 == 0; };
  for (int i = 0; i < 100'000; ++i) {
    fate::Evidence evidence{.place = static_cast<fate::TokenPlace>(random() % 4),
                            .is_due = coin(),
                            .passed_by = static_cast<fate::PassedBy>(random() % 4),
                            .is_missed = coin(),
                            .is_recorded = coin(),
                            .was_unfit = coin()};
    for (auto n = random() % 4; n > 0; --n)
      evidence.batches.push_back({.state = static_cast<State>(random() % 3),
                                  .attempts = static_cast<int>(1 + random() % 2),
                                  .is_skipped = coin(),
                                  .is_certain = coin()});
    const auto fate = fate::judge_fate(evidence);
    bool may_be_sent = false;
    for (const auto& batch : evidence.batches)
      may_be_sent =
          may_be_sent || (batch.state == State::emitted && (!batch.is_skipped || batch.attempts > 1));
    const bool looks_sent =
        fate.outcome <= fate::Outcome::maybe_emitted || fate.fault == fate::Fault::unasked;
    REQUIRE(looks_sent == may_be_sent);
    REQUIRE((fate.times + fate.maybe > 0) == may_be_sent);
    REQUIRE(fate::is_fault(fate.outcome) == (fate.fault != fate::Fault::none));
  }
}

}  // namespace mailroom::test::fate_test
