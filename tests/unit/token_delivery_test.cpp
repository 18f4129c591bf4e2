// The status of a delivery, derived from its record, and the sentence that tells it.

#include "audit/history.hpp"
#include "cmd/audit/audit_report.hpp"
#include "support/catch.hpp"

namespace mailroom::test::token_delivery_test {

using namespace std::chrono_literals;

namespace {

constexpr Moment now(1'795'252'100s);
constexpr Moment at(1'795'252'045s);

feed::DeliveryAttempt attempt(const std::string& state, int code, const std::string& reply,
                              Moment when = at) {
  return {.queue = "mailroom",
          .at = when,
          .state = state,
          .sink = code == 0 ? "" : "relay.example:25",
          .code = code,
          .reply = reply};
}

feed::DeliveryAttempt accepted(Moment when = at) {
  return attempt("accepted", 250, "2.0.0 Ok: queued as 4Z1", when);
}

feed::DeliveryAttempt deferred(Moment when = at) {
  return attempt("deferred", 451, "4.7.1 greylisted", when);
}

feed::DeliveryRecord record(std::vector<feed::DeliveryAttempt> attempts,
                            const std::string& queue = "mailroom") {
  feed::DeliveryRecord record{.token = 51, .queue = queue, .attempts = std::move(attempts), .batch = 7};
  if (record.last().state == "deferred") record.not_before = at;
  return record;
}

audit::TokenFacts facts(std::int64_t cursor = 60) {
  audit::TokenFacts facts{
      {.id = 51, .action = "activation", .state = "due", .created_at = at - 10s, .expires_at = now + 900s}};
  facts.queues = {{.queue = "mailroom", .cursor = cursor, .records_complete = true}};
  return facts;
}

std::string sentence(audit::TokenFacts token, const feed::DeliveryRecord& mail) {
  token.deliveries = {mail};
  const auto statuses = audit::judge_deliveries(token);
  REQUIRE(statuses.size() == 1);
  return std::string(fate::outcome_name(statuses[0].outcome)) + " | " +
         cmd::token_delivery_text(statuses[0], now);
}

}  // namespace

TEST_CASE("a mail that was accepted once may have been accepted before, where an answer was lost") {
  auto mail = record({deferred(at - 15s), accepted()});
  mail.unknowns = 1;
  CHECK(sentence(facts(), mail).starts_with("accepted | accepted once for certain, and perhaps once more, "));
  // The lease of a consumer that died is among them, if it had begun.
  auto token = facts();
  queue::BatchRecord batch{.id = 7, .queue = "mailroom", .emitted_at = at};
  batch.abandoned.resize(1);
  token.batches = {batch};
  CHECK(sentence(token, mail).starts_with("accepted | accepted once for certain, and perhaps once more, "));
  CHECK(sentence(token, record({accepted()})).starts_with("accepted | accepted once, "));
}

TEST_CASE("the status of a delivery says whether it was accepted, and what happens next") {
  struct Case {
    const char* name;
    std::vector<feed::DeliveryAttempt> attempts;
    std::string text;
  };
  auto cut_off = attempt("unknown", 0, "the connection ended before the answer");
  cut_off.sink = "relay.example:25";
  const std::string words = "by relay.example:25: 250 2.0.0 Ok: queued as 4Z1";
  const std::vector<Case> cases{
      {"accepted", {accepted()}, "accepted | accepted once, 2026-11-21T09:07:25Z " + words},
      {"at the second attempt",
       {deferred(at - 15s), accepted()},
       "accepted | accepted once, 2026-11-21T09:07:25Z " + words},
      {"twice",
       {accepted(at - 5s), accepted()},
       "accepted | accepted 2 times, last 2026-11-21T09:07:25Z " + words},
      {"accepted, then rejected",
       {accepted(at - 5s), attempt("rejected", 550, "no")},
       "accepted | accepted once, 2026-11-21T09:07:20Z " + words},
      {"accepted, then given back",
       {accepted(at - 5s), attempt("deferred", 0, "")},
       "accepted | accepted once, 2026-11-21T09:07:20Z " + words +
           ", and deferred since: the next attempt is due"},
      {"deferred",
       {deferred()},
       "deferred | not accepted yet: deferred, the next attempt is due: 451 4.7.1 greylisted"},
      {"given back",
       {attempt("deferred", 0, "")},
       "deferred | not accepted yet: deferred, the next attempt is due"},
      {"rejected",
       {attempt("rejected", 550, "5.1.1 no such user")},
       "rejected | not accepted: rejected 2026-11-21T09:07:25Z by relay.example:25: 550 5.1.1 no such user"},
      {"refused",
       {attempt("rejected", 0, "no address")},
       "rejected | not accepted: rejected 2026-11-21T09:07:25Z: no address"},
      {"no answer",
       {cut_off},
       "unknown | perhaps accepted, 2026-11-21T09:07:25Z by relay.example:25: the connection ended before the answer"},
      {"no answer, then rejected",
       {cut_off, attempt("rejected", 550, "no")},
       "rejected | perhaps accepted: rejected 2026-11-21T09:07:25Z by relay.example:25: 550 no"},
      {"expired",
       {attempt("expired", 451, "4.7.1 greylisted")},
       "expired | not accepted: expired 2026-11-21T09:07:25Z, relay.example:25: 451 4.7.1 greylisted"},
      {"superseded",
       {attempt("cancelled", 0, "superseded by token 52")},
       "cancelled | not accepted: cancelled 2026-11-21T09:07:25Z: superseded by token 52"},
      {"rewound",
       {attempt("cancelled", 451, "4.7.1 greylisted")},
       "cancelled | not accepted: cancelled by a rewind"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    CHECK(sentence(facts(), record(c.attempts)) == c.text);
  }
}

TEST_CASE("the next attempt of a deferred delivery is at its time, in the batch that holds it, or due") {
  auto waiting = record({deferred()});
  waiting.not_before = now + 13s + 200ms;
  CHECK(sentence(facts(), waiting) ==
        "deferred | not accepted yet: deferred, the next attempt in 14s: 451 4.7.1 greylisted");
  waiting.not_before = now;
  CHECK(sentence(facts(), waiting).find("the next attempt is due:") != std::string::npos);
  auto leased = facts();
  leased.batches = {{.id = 8, .queue = "mailroom", .tokens = {{51, 52}}, .size = 1}};
  auto taken = record({deferred()});
  taken.not_before.reset();
  CHECK(sentence(leased, taken).find("leased | not accepted yet: deferred, leased for the next attempt:") ==
        0);
  CHECK(sentence(facts(), taken)
            .find("unexplained | not accepted yet: deferred, but nothing will try it again:") == 0);
  auto cut = record({deferred()});
  cut.unknowns = 1;
  CHECK(sentence(facts(), cut) ==
        "deferred | perhaps accepted: deferred, the next attempt is due: 451 4.7.1 greylisted");
}

TEST_CASE("a delivery that was accepted or given up may be in the queue again") {
  const auto tail_of = [](audit::TokenFacts token, const feed::DeliveryAttempt& last) {
    const auto text = sentence(std::move(token), record({last}));
    return text.substr(std::min(text.rfind(';'), text.rfind(", and leased")));
  };
  CHECK(tail_of(facts(40), accepted()) == "; it will be delivered again");
  CHECK(tail_of(facts(40), attempt("cancelled", 0, "")) == "; it will be tried again");
  auto leased = facts();
  leased.batches = {{.id = 8, .queue = "mailroom", .tokens = {{51, 52}}, .size = 1}};
  CHECK(tail_of(leased, accepted()) == ", and leased again");
  auto consumed = facts(40);
  consumed.state = "consumed";
  CHECK(sentence(consumed, record({accepted()})).find("again") == std::string::npos);
}

TEST_CASE("outcomes from before a token was created are of an earlier token with its id") {
  auto token = facts();
  audit::set_deliveries(token, {record({accepted(at - 60s), deferred()}),
                                record({accepted(at - 60s)}, "second"),
                                {.token = 52, .queue = "mailroom", .attempts = {accepted()}}});
  REQUIRE(token.deliveries.size() == 1);
  REQUIRE(token.deliveries[0].attempts.size() == 1);
  CHECK(token.deliveries[0].last().state == "deferred");
  CHECK(token.deliveries[0].last().token.id == 51);
  token = facts();
  token.exists = false;
  audit::set_deliveries(token, {record({accepted(at - 60s), deferred()})});
  CHECK(token.deliveries.at(0).attempts.size() == 2);
}

TEST_CASE("the status of a token tells of its deliveries, and what queues without one did with it") {
  auto token = facts();
  token.queues.push_back({.queue = "second", .cursor = 60, .records_complete = true});
  token.batches = {
      {.id = 7, .queue = "mailroom", .tokens = {{51, 52}}, .size = 1, .emitted_at = at, .emitted = 1},
      {.id = 9,
       .queue = "second",
       .tokens = {{51, 52}},
       .size = 1,
       .claimed_by = "collect",
       .emitted_at = at,
       .emitted = 1}};
  token.deliveries = {record({accepted()})};
  const auto deliveries = audit::judge_deliveries(token);
  auto rest = audit::without_deliveries(token);
  const audit::TokenReport both{rest, audit::judge_token(rest), deliveries};
  const std::string accepted_once =
      "token 51 (activation): accepted once, 2026-11-21T09:07:25Z by relay.example:25: 250 2.0.0 Ok: queued as 4Z1; ";
  const std::string usable = "not consumed, usable for another 15m";
  CHECK(cmd::status_text(both, now) ==
        accepted_once + "emitted once, 2026-11-21T09:07:25Z in batch 9 by collect; " + usable);
  token.batches.pop_back();
  rest = audit::without_deliveries(token);
  CHECK(cmd::status_text({rest, {}, deliveries}, now) == accepted_once + usable);
  std::swap(token.queues[0], token.queues[1]);
  CHECK(cmd::status_text({rest, {}, audit::judge_deliveries(token)}, now)
            .find(": in queue mailroom, accepted once") != std::string::npos);
}

}  // namespace mailroom::test::token_delivery_test
