// The outcome of a delivery as an event: lines, JSON, templates and filters.

#include "base/json.hpp"
#include "cmd/audit/audit_report.hpp"
#include "cmd/events/event_text.hpp"
#include "cmd/tail/tail_report.hpp"
#include "fate/outcome.hpp"
#include "feed/past_events.hpp"
#include "support/catch.hpp"

namespace mailroom::test::delivery_event_test {

using namespace std::chrono_literals;

namespace {

feed::DeliveryAttempt mail(const std::string& state, int code, const std::string& reply) {
  return {.token = {.id = 51,
                    .action = "password_recovery",
                    .account = {.id = 17, .email = "User.One@mail.example", .login = "one"}},
          .queue = "mailroom",
          .at = Moment(1'795'252'045'266'123us),
          .state = state,
          .sink = code == 0 ? "" : "relay.example:25",
          .code = code,
          .reply = reply};
}

feed::Event event_of(const feed::DeliveryAttempt& mail) {
  return {feed::EventKind::delivery, mail.at, mail};
}

std::string line(const feed::Event& event) {
  return cmd::EventLines({.queue = "mailroom", .columns = std::nullopt, .colour = false}).render(event);
}

feed::DeliveryAttempt cut_off() {
  auto cut = mail("unknown", 0, "the connection ended before the answer");
  cut.sink = "relay.example:25";
  return cut;
}

}  // namespace

TEST_CASE("the outcome of a delivery is told with the relay and its words") {
  struct Case {
    feed::DeliveryAttempt mail;
    std::string text;
  };
  const std::vector<Case> cases{
      {mail("accepted", 250, "2.0.0 Ok: queued as 4Z1"),
       "accepted by relay.example:25: 250 2.0.0 Ok: queued as 4Z1"},
      {mail("accepted", 250, ""), "accepted by relay.example:25: 250"},
      {mail("deferred", 451, "4.7.1 greylisted"), "deferred, relay.example:25: 451 4.7.1 greylisted"},
      {mail("deferred", 0, ""), "deferred without an attempt"},
      {mail("rejected", 550, "5.1.1 no such user"), "rejected by relay.example:25: 550 5.1.1 no such user"},
      {mail("rejected", 0, "the address has a space"), "rejected: the address has a space"},
      {cut_off(), "unknown, relay.example:25: the connection ended before the answer"},
      {mail("expired", 0, "the token has expired"), "expired: the token has expired"},
      {mail("cancelled", 0, "superseded by token 52"), "cancelled: superseded by token 52"},
      {mail("cancelled", 451, "4.7.1 greylisted"),
       "cancelled by a rewind, relay.example:25: 451 4.7.1 greylisted"},
      {mail("cancelled", 0, ""), "cancelled by a rewind"},
      {mail("rejected", 550, "5.1.1 a\x1b[31mb\nc"), "rejected by relay.example:25: 550 5.1.1 a?[31mb?c"},
  };
  for (const auto& c : cases)
    CHECK(cmd::delivery_text(c.mail) == c.text);
}

TEST_CASE("the tail shows a delivery with its token, account and outcome") {
  auto attempt = mail("rejected", 550, "5.1.1 no such user");
  CHECK(line(event_of(attempt)) ==
        "2026-11-21T09:07:25Z  token 51    delivery   recovery    17 User.One@mail.example  rejected by "
        "relay.example:25: 550 5.1.1 no such user\n");
  const auto json = parse_json(cmd::render_json(event_of(attempt)));
  CHECK(json.at("time") == "2026-11-21T09:07:25.266Z");
  CHECK(json.at("event") == "delivery");
  CHECK(json.at("state") == "rejected");
  CHECK(json.at("token") == 51);
  CHECK(json.at("email") == "User.One@mail.example");
  CHECK(json.at("code") == 550);
  CHECK(json.at("reply") == "5.1.1 no such user");

  attempt = mail("cancelled", 0, "the token was deleted");
  attempt.token = {.id = 51};
  attempt.queue = "second";
  CHECK(line(event_of(attempt)) ==
        "2026-11-21T09:07:25Z  token 51    delivery   queue second, cancelled: the token was deleted\n");
  const auto bare = parse_json(cmd::render_json(event_of(attempt)));
  CHECK_FALSE(bare.contains("account"));
  CHECK(bare.at("sink").is_null());
  CHECK(bare.at("code").is_null());
}

TEST_CASE("a masked mail shows no address, login or local part, also where the relay repeats them") {
  const auto event = cmd::masked(event_of(
      mail("rejected", 550,
           "5.1.1 <user.one@MAIL.example>: User.One unknown (login ONE.), see postmaster@relay.example")));
  CHECK(event.delivery()->reply ==
        "5.1.1 <u***@MAIL.example>: U*** unknown (login O***), see p***@relay.example");
  for (const auto& text : {line(event), cmd::render_json(event)}) {
    CHECK(text.find("ser.") == std::string::npos);
    CHECK(text.find("U***@mail.example") != std::string::npos);
  }
  CHECK(
      cmd::masked(event_of(mail("deferred", 451, "4.7.1 greylisted, one moment please"))).delivery()->reply ==
      "4.7.1 greylisted, o*** moment please");
}

TEST_CASE(
    "a filter matches deliveries by outcome, all deliveries as delivery, and token and account as for tokens") {
  const auto rejected = event_of(mail("rejected", 550, "no"));
  const auto wants = [&](const feed::EventFilter& filter) { return filter.wants(rejected); };
  CHECK(wants({}));
  CHECK(wants({.action = {}, .accounts = {}, .states = {"rejected"}}));
  CHECK(wants({.action = {}, .accounts = {}, .states = {"due", "delivery"}}));
  CHECK_FALSE(wants({.action = {}, .accounts = {}, .states = {"accepted"}}));
  CHECK_FALSE(wants({.action = {}, .accounts = {}, .states = {"emitted"}}));
  CHECK(wants({.action = "password_recovery", .accounts = {3, 17}, .states = {}, .from_token = 51}));
  CHECK_FALSE(wants({.action = "activation", .accounts = {}, .states = {}}));
  CHECK_FALSE(wants({.action = {}, .accounts = {3}, .states = {}}));
  CHECK_FALSE(wants({.action = {}, .accounts = {}, .states = {}, .from_token = 52}));
  for (const auto outcome : fate::delivery_outcomes)
    CHECK(feed::EventFilter{.action = {}, .accounts = {}, .states = {fate::outcome_name(outcome)}}.may_want(
        feed::EventKind::delivery));
  CHECK_FALSE(
      feed::EventFilter{.action = {}, .accounts = {}, .states = {"due"}}.may_want(feed::EventKind::delivery));
  CHECK(
      std::all_of(fate::delivery_outcomes.begin(), fate::delivery_outcomes.end(), [](fate::Outcome outcome) {
        return std::count(feed::state_text().begin(), feed::state_text().end(),
                          fate::outcome_name(outcome)) == 1;
      }));
}

}  // namespace mailroom::test::delivery_event_test
