// What audit tells an operator to do about a token.

#include "audit/next_steps.hpp"

#include "support/catch.hpp"

namespace mailroom::test::next_steps_test {

using namespace std::chrono_literals;

namespace {

audit::TokenReport report(fate::Outcome outcome, const std::string& state = "due") {
  audit::TokenReport report;
  report.token = audit::TokenFacts{
      {.id = 51, .action = "activation", .state = state, .account = {.id = 7, .status = "provisioned"}}};
  report.status = {.outcome = outcome, .queue = "mailroom"};
  return report;
}

audit::TokenReport delivered(fate::Outcome outcome, const std::string& sink = "relay:25") {
  auto made = report(fate::Outcome::unexplained);
  feed::DeliveryRecord record{.token = 51, .queue = "mailroom"};
  record.attempts = {{.state = fate::outcome_name(outcome), .sink = sink}};
  made.deliveries = {{.delivery = record, .outcome = outcome}};
  return made;
}

/// The commands, each on a line.
std::string commands(const audit::TokenReport& report, const audit::Holds& holds = {}) {
  std::string text;
  for (const auto& step : audit::next_steps(report, holds))
    text += step.command + "\n";
  return text;
}

audit::Holds held() {
  return {.paused = {{.queue = "mailroom",
                      .pause = {.since = Moment(0s), .lasts = 3s, .actor = "alice", .reason = "moved"}}},
          .sinks = {{.name = "relay:25", .failures = 3, .lasts = 30s, .reason = "no route"}}};
}

}  // namespace

TEST_CASE("a token that nobody will send any more is sent again by resend") {
  for (const auto outcome : {fate::Outcome::emitted, fate::Outcome::emitted_again,
                             fate::Outcome::maybe_emitted, fate::Outcome::skipped, fate::Outcome::dead,
                             fate::Outcome::moved_past, fate::Outcome::not_recorded}) {
    CHECK(commands(report(outcome)) == "mailroom resend token:51\n");
    CHECK(commands(report(outcome, "expired")) == "mailroom resend token:51 --extend 15m\n");
  }
  for (const auto outcome :
       {fate::Outcome::accepted, fate::Outcome::rejected, fate::Outcome::unknown, fate::Outcome::cancelled})
    CHECK(commands(delivered(outcome)) == "mailroom resend token:51\n");
}

TEST_CASE("a message is sent again to all of its recipients, or to one of them by his token") {
  auto one = report(fate::Outcome::emitted, "expired");
  one.token.message = 5;
  const auto steps = audit::next_steps(one, {}, 3);
  REQUIRE(steps.size() == 1);
  CHECK(steps[0].command == "mailroom resend message:5 --extend 15m");
  CHECK(steps[0].text == "to mail all 3 recipients again (token:N mails one of them)");
  CHECK(audit::next_steps(one, {}, 1)[0].command == "mailroom resend token:51 --extend 15m");
}

TEST_CASE("a message whose address was rejected is mailed to the same address by resend") {
  auto rejected = delivered(fate::Outcome::rejected);
  CHECK(audit::next_steps(rejected, {}, 1)[0].text == "to mail it");
  rejected.token.message = 5;
  const auto step = audit::next_steps(rejected, {}, 1)[0];
  CHECK(step.command == "mailroom resend token:51");
  CHECK(step.text == "to mail it again, to the same address; for another one, ask for a new message");
}

TEST_CASE("a token that waits is held back by its queue or its relay, or by nothing") {
  for (const auto outcome : {fate::Outcome::waiting, fate::Outcome::in_gap, fate::Outcome::in_replay}) {
    CHECK(commands(report(outcome)).empty());
    CHECK(commands(report(outcome), held()) == "mailroom queue resume mailroom\nmailroom doctor\n");
  }
  CHECK(commands(delivered(fate::Outcome::deferred), held()) ==
        "mailroom queue resume mailroom\nmailroom doctor\n");
  CHECK(commands(delivered(fate::Outcome::deferred, "other:25"), held()) ==
        "mailroom queue resume mailroom\n");
  const auto steps = audit::next_steps(report(fate::Outcome::waiting), held());
  REQUIRE(steps.size() == 2);
  CHECK(steps[0].text ==
        "queue mailroom is paused since 1970-01-01T00:00:00Z by alice (moved); to resume it");
  CHECK(steps[1].text == "relay:25 is unavailable since 30s (no route); to see why");
}

TEST_CASE("an expired token that its queue has not come to is sent by resend, whatever holds the queue") {
  auto unreached = report(fate::Outcome::skipped, "expired");
  unreached.status.next = fate::Outcome::waiting;
  CHECK(commands(unreached, held()) == "mailroom resend token:51 --extend 15m\n");
}

TEST_CASE("of a suspended account only the end of the suspension helps") {
  auto suspended = report(fate::Outcome::waiting, "wrong status");
  suspended.token.account.status = "suspended";
  CHECK(commands(suspended, held()) == "mailroom suspend --undo id:7\n");
}

TEST_CASE("a token that is consumed or gone needs no step") {
  auto consumed = report(fate::Outcome::emitted, "consumed");
  consumed.token.consumed_at = Moment(1s);
  CHECK(commands(consumed).empty());
  auto gone = report(fate::Outcome::emitted);
  gone.token.exists = false;
  CHECK(commands(gone).empty());
}

TEST_CASE("of several queues a step names its own") {
  auto both = report(fate::Outcome::emitted);
  both.by_queue = {report(fate::Outcome::emitted), report(fate::Outcome::waiting)};
  both.by_queue[0].queue = "mailroom";
  both.by_queue[1].queue = both.by_queue[1].status.queue = "second";
  CHECK(commands(both) == "mailroom resend token:51 --queue mailroom\n");
}

TEST_CASE("faults and leases have a command of their own") {
  CHECK(commands(report(fate::Outcome::missed)) == "mailroom rewind-cursor --fix-sequence\n");
  CHECK(commands(report(fate::Outcome::unexplained)) == "mailroom reconcile --list\n");
  CHECK(commands(report(fate::Outcome::leased)) == "mailroom status --queue mailroom\n");
  CHECK(commands(report(fate::Outcome::not_taken)) == "mailroom queue list\n");
}

}  // namespace mailroom::test::next_steps_test
