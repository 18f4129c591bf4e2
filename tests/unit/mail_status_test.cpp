// The status of a mail, derived from its record, and the sentence that tells it.

#include "audit/mail_status.hpp"

#include "audit/history.hpp"
#include "cmd/audit/audit_status.hpp"
#include "cmd/audit/mail_status_text.hpp"
#include "support/catch.hpp"

using namespace mailroom;
using namespace std::chrono_literals;

namespace {

constexpr Moment now(1'795'252'100s);
constexpr Moment at(1'795'252'045s);

MailAttempt attempt(const std::string& state, int code, const std::string& reply, Moment when = at) {
  return {.queue = "mailroom",
          .at = when,
          .state = state,
          .sink = code == 0 ? "" : "relay.example:25",
          .code = code,
          .reply = reply};
}

MailAttempt accepted(Moment when = at) {
  return attempt("accepted", 250, "2.0.0 Ok: queued as 4Z1", when);
}

MailAttempt deferred(Moment when = at) {
  return attempt("deferred", 451, "4.7.1 greylisted", when);
}

MailRecord record(std::vector<MailAttempt> attempts, const std::string& queue = "mailroom") {
  return {.token = 51, .queue = queue, .attempts = std::move(attempts), .batch = 7};
}

TokenFacts facts(std::int64_t cursor = 60) {
  TokenFacts facts{
      {.id = 51, .action = "activation", .state = "due", .created_at = at - 10s, .expires_at = now + 900s}};
  facts.queues = {{.queue = "mailroom", .cursor = cursor, .records_complete = true}};
  return facts;
}

std::string sentence(TokenFacts token, const MailRecord& mail) {
  token.mails = {mail};
  const auto statuses = judge_mails(token);
  REQUIRE(statuses.size() == 1);
  return mail_outcome_name(statuses[0]) + " | " + mail_status_text(statuses[0], now);
}

}  // namespace

TEST_CASE("the status of a mail says whether it was mailed, and what happens next") {
  struct Case {
    const char* name;
    std::vector<MailAttempt> attempts;
    std::string text;
  };
  auto cut_off = attempt("unknown", 0, "the connection ended before the answer");
  cut_off.sink = "relay.example:25";
  const std::string words = "accepted by relay.example:25: 250 2.0.0 Ok: queued as 4Z1";
  const std::vector<Case> cases{
      {"accepted", {accepted()}, "mailed | mailed once, 2026-11-21T09:07:25Z, " + words},
      {"at the second attempt",
       {deferred(at - 15s), accepted()},
       "mailed | mailed once, 2026-11-21T09:07:25Z, " + words},
      {"twice",
       {accepted(at - 5s), accepted()},
       "mailed | mailed 2 times, last 2026-11-21T09:07:25Z, " + words},
      {"accepted, then rejected",
       {accepted(at - 5s), attempt("rejected", 550, "no")},
       "mailed | mailed once, 2026-11-21T09:07:20Z, " + words},
      {"accepted, then given back",
       {accepted(at - 5s), attempt("deferred", 0, "")},
       "mailed | mailed once, 2026-11-21T09:07:20Z, " + words +
           ", and deferred since: the next attempt is due"},
      {"deferred",
       {deferred()},
       "deferred | not mailed yet: deferred, the next attempt is due: 451 4.7.1 greylisted"},
      {"given back",
       {attempt("deferred", 0, "")},
       "deferred | not mailed yet: deferred, the next attempt is due"},
      {"rejected",
       {attempt("rejected", 550, "5.1.1 no such user")},
       "rejected | not mailed: rejected 2026-11-21T09:07:25Z by relay.example:25: 550 5.1.1 no such user"},
      {"refused",
       {attempt("rejected", 0, "no address")},
       "rejected | not mailed: rejected 2026-11-21T09:07:25Z: no address"},
      {"no answer",
       {cut_off},
       "maybe mailed | perhaps mailed, 2026-11-21T09:07:25Z by relay.example:25: the connection ended before the answer"},
      {"no answer, then rejected",
       {cut_off, attempt("rejected", 550, "no")},
       "maybe mailed | perhaps mailed: rejected 2026-11-21T09:07:25Z by relay.example:25: 550 no"},
      {"expired",
       {attempt("expired", 451, "4.7.1 greylisted")},
       "expired | not mailed: expired 2026-11-21T09:07:25Z, relay.example:25: 451 4.7.1 greylisted"},
      {"superseded",
       {attempt("cancelled", 0, "superseded by token 52")},
       "cancelled | not mailed: cancelled 2026-11-21T09:07:25Z: superseded by token 52"},
      {"rewound",
       {attempt("cancelled", 451, "4.7.1 greylisted")},
       "cancelled | not mailed: cancelled by a rewind"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    CHECK(sentence(facts(), record(c.attempts)) == c.text);
  }
}

TEST_CASE("the next attempt of a deferred mail is at its time, in the batch that holds it, or due") {
  auto waiting = record({deferred()});
  waiting.not_before = now + 13s + 200ms;
  CHECK(sentence(facts(), waiting) ==
        "deferred | not mailed yet: deferred, the next attempt in 14s: 451 4.7.1 greylisted");
  waiting.not_before = now;
  CHECK(sentence(facts(), waiting).find("the next attempt is due:") != std::string::npos);
  auto leased = facts();
  leased.batches = {{.id = 8, .queue = "mailroom", .tokens = {{51, 52}}, .size = 1}};
  CHECK(sentence(leased, record({deferred()})).find("leased for the next attempt:") != std::string::npos);
  auto cut = record({deferred()});
  cut.unknowns = 1;
  CHECK(sentence(facts(), cut) ==
        "maybe mailed | perhaps mailed: deferred, the next attempt is due: 451 4.7.1 greylisted");
}

TEST_CASE("a mail that was accepted or given up may be in the queue again") {
  const auto tail_of = [](TokenFacts token, const MailAttempt& last) {
    const auto text = sentence(std::move(token), record({last}));
    return text.substr(std::min(text.rfind(';'), text.rfind(", and leased")));
  };
  CHECK(tail_of(facts(40), accepted()) == "; it will be mailed again");
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
  set_mails(token, {record({accepted(at - 60s), deferred()}),
                    record({accepted(at - 60s)}, "second"),
                    {.token = 52, .queue = "mailroom", .attempts = {accepted()}}});
  REQUIRE(token.mails.size() == 1);
  REQUIRE(token.mails[0].attempts.size() == 1);
  CHECK(token.mails[0].last().state == "deferred");
  CHECK(token.mails[0].last().token.id == 51);
  token = facts();
  token.exists = false;
  set_mails(token, {record({accepted(at - 60s), deferred()})});
  CHECK(token.mails.at(0).attempts.size() == 2);
}

TEST_CASE("the status of a token tells of its mails, and what queues without a mail did with it") {
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
  token.mails = {record({accepted()})};
  const auto mails = judge_mails(token);
  auto rest = without_mails(token);
  const TokenReport both{rest, judge_token(rest), mails};
  const std::string mailed =
      "token 51 (activation): mailed once, 2026-11-21T09:07:25Z, accepted by relay.example:25: 250 2.0.0 Ok: queued as 4Z1; ";
  const std::string usable = "not consumed, usable for another 15m";
  CHECK(status_text(both, now) ==
        mailed + "emitted once, 2026-11-21T09:07:25Z in batch 9 by collect; " + usable);
  token.batches.pop_back();
  rest = without_mails(token);
  CHECK(status_text({rest, {}, mails}, now) == mailed + usable);
  std::swap(token.queues[0], token.queues[1]);
  CHECK(status_text({rest, {}, judge_mails(token)}, now).find(": in queue mailroom, mailed once") !=
        std::string::npos);
}
