// Which event of Resend an outcome is, and what it says.

#include "resend_api/outcome_event.hpp"

#include "base/json.hpp"
#include "support/catch.hpp"

namespace mailroom::test::outcome_event_test {
namespace {

nlohmann::json facts_of(const std::string& state, const std::string& reply) {
  return {{"event_id", "a2220cc1-7604-48c4-b811-7ed7eb1c0acf"},
          {"email_id", "c564fd11-3fbc-4c1a-ba49-d3c98dc8c9c3"},
          {"at", "2026-11-28T12:00:01.123Z"},
          {"created_at", "2026-11-28T12:00:00.000Z"},
          {"state", state},
          {"recipient", "ada@example.org"},
          {"subject", "Hello"},
          {"reply", reply},
          {"is_called_off", false}};
}

std::string type_of(const nlohmann::json& facts) {
  const auto event = resend_api::outcome_event(facts, "a@shop.example");
  return event ? text_at(parse_json(event->body), "type") : std::string("none");
}

}  // namespace

TEST_CASE("an outcome is the event of the table, or none") {
  CHECK(type_of(facts_of("accepted", "2.0.0 ok")) == "email.sent");
  CHECK(type_of(facts_of("deferred", "4.2.0 later")) == "email.delivery_delayed");
  CHECK(type_of(facts_of("rejected", "5.1.1 no such user")) == "email.failed");
  CHECK(type_of(facts_of("expired", "")) == "email.failed");
  CHECK(type_of(facts_of("unknown", "no answer")) == "email.failed");
  CHECK(type_of(facts_of("bounced", "spam: 5.7.1 no")) == "email.bounced");
  CHECK(type_of(facts_of("complained", "feedback:")) == "email.complained");
  CHECK(type_of(facts_of("delivered", "")) == "email.delivered");
  CHECK(type_of(facts_of("cancelled", "the address has had 3 mails, and send.per_recipient is 3/1d")) ==
        "email.failed");
  CHECK(type_of(facts_of("cancelled", "the address is suppressed: complaint")) == "email.suppressed");
  CHECK(type_of(facts_of("cancelled", "the cursor was moved over it")) == "email.failed");
  CHECK(type_of(facts_of("replaced", "a message with the same key took its place")) == "none");
  CHECK(type_of(facts_of("unsubscribed", "")) == "none");
  auto called_off = facts_of("cancelled", "the message was cancelled");
  called_off["is_called_off"] = true;
  CHECK(type_of(called_off) == "none");
}

TEST_CASE("an event has its id, the words of its outcome, and no null") {
  const auto event = resend_api::outcome_event(facts_of("unknown", "no answer"), "a@shop.example");
  REQUIRE(event);
  CHECK(event->id == "msg_a2220cc1-7604-48c4-b811-7ed7eb1c0acf");
  CHECK(
      event->body ==
      R"({"type":"email.failed","created_at":"2026-11-28T12:00:01.123Z","data":{"email_id":"c564fd11-3fbc-4c1a-ba49-d3c98dc8c9c3","created_at":"2026-11-28T12:00:00.000Z","from":"a@shop.example","to":["ada@example.org"],"subject":"Hello","failed":{"reason":"unknown: no answer; whether the relay has taken it is not known: it may have arrived"}}})");
}

TEST_CASE("a bounce whose record has gone keeps its reason") {
  const auto facts = facts_of("bounced", "mailbox_full: 4.2.2 mailbox full");
  const auto body = parse_json(resend_api::outcome_event(facts, "")->body);
  CHECK(body.at("data").at("bounce").at("subType") == "MailboxFull");
  CHECK(body.at("data").at("bounce").at("type") == "Undetermined");
}

}  // namespace mailroom::test::outcome_event_test
