// What becomes of a token after an attempt to mail it, or without one.

#include "delivery/delivery_policy.hpp"

#include "support/catch.hpp"

namespace mailroom::test::delivery_policy_test {
namespace {

delivery::Answer answer(delivery::Verdict verdict, bool counts = true) {
  return {.verdict = verdict, .sink = "relay:25", .code = 451, .reply = "try later", .is_excused = !counts};
}

std::string without_attempt(const delivery::DeliveryHistory& history,
                            const delivery::DeliveryPolicy& policy = {}) {
  const auto outcome = delivery::outcome_without_attempt(history, policy);
  if (!outcome) return "mail it";
  CHECK(outcome->attempts == 0);
  CHECK(outcome->token == history.token);
  CHECK(outcome->unknowns == history.take_overs);
  CHECK_FALSE(outcome->reply.empty());
  return fate::outcome_name(outcome->state);
}

double wait_after(int attempts, double jitter) {
  return delivery::outcome_of_attempt({.attempts = attempts}, answer(delivery::Verdict::deferred), {}, jitter)
      .wait.count();
}

}  // namespace

TEST_CASE("a token that is not due, that has a defect or a successor is not mailed") {
  CHECK(without_attempt({.token = 7}) == "mail it");
  CHECK(without_attempt({.token = 7, .state = claim::TokenState::expired}) == "expired");
  CHECK(without_attempt({.token = 7, .state = claim::TokenState::consumed}) == "cancelled");
  CHECK(without_attempt({.token = 7, .state = claim::TokenState::wrong_status}) == "cancelled");
  CHECK(without_attempt({.token = 7, .defect = "the address is too long"}) == "rejected");
  CHECK(without_attempt({.token = 7, .newer = 9}) == "cancelled");
  CHECK(delivery::outcome_without_attempt({.newer = 9}, {})->reply == "superseded by token 9");
  CHECK(without_attempt({.token = 7, .newer = 9}, {.supersede = false}) == "mail it");
}

TEST_CASE("a token that may have been mailed before is unknown, whatever keeps it from being mailed again") {
  for (const auto state :
       {claim::TokenState::expired, claim::TokenState::consumed, claim::TokenState::wrong_status}) {
    CHECK(without_attempt({.state = state, .unknowns = 1}) == "unknown");
    CHECK(without_attempt({.state = state, .take_overs = 1}) == "unknown");
  }
  CHECK(without_attempt({.defect = "bad", .take_overs = 1}) == "unknown");
  CHECK(without_attempt({.take_overs = 1, .newer = 9}) == "unknown");
}

TEST_CASE("a take-over is no attempt, but may have mailed") {
  const delivery::DeliveryPolicy hold{.when_unknown = config::WhenUnknown::hold};
  CHECK(without_attempt({.take_overs = 1}) == "mail it");
  CHECK(without_attempt({.take_overs = 19}) == "mail it");
  CHECK(without_attempt({.unknowns = 1, .take_overs = 1}) == "mail it");
  CHECK(without_attempt({.unknowns = 1}) == "mail it");
  CHECK(without_attempt({.take_overs = 1}, hold) == "unknown");
  CHECK(without_attempt({.attempts = 3}, hold) == "mail it");
}

TEST_CASE("an answer is recorded as it is") {
  const auto accepted =
      delivery::outcome_of_attempt({.token = 7, .take_overs = 1}, answer(delivery::Verdict::accepted), {}, 0);
  CHECK(accepted.state == fate::Outcome::accepted);
  CHECK(accepted.token == 7);
  CHECK(accepted.attempts == 1);
  CHECK(accepted.unknowns == 1);
  CHECK(accepted.sink == "relay:25");
  CHECK(accepted.code == 451);
  CHECK(accepted.reply == "try later");
  CHECK(delivery::outcome_of_attempt({}, answer(delivery::Verdict::rejected), {}, 0).state ==
        fate::Outcome::rejected);
}

TEST_CASE("a mail that is refused after an attempt without an answer may have arrived") {
  for (const auto& history :
       {delivery::DeliveryHistory{.unknowns = 1}, delivery::DeliveryHistory{.take_overs = 1}}) {
    const auto refused = delivery::outcome_of_attempt(history, answer(delivery::Verdict::rejected), {}, 0);
    CHECK(refused.state == fate::Outcome::unknown);
    CHECK(refused.code == 451);
    CHECK(refused.reply == "try later");
    CHECK(refused.unknowns == history.take_overs);
  }
}

TEST_CASE("a deferred token waits longer after each attempt, with a fifth of jitter") {
  const int pauses[] = {15, 30, 60, 120, 240, 240, 240};
  for (int attempts = 0; attempts < 7; ++attempts) {
    CHECK(wait_after(attempts, 0) == Approx(pauses[attempts]));
    CHECK(wait_after(attempts, 1) == Approx(1.2 * pauses[attempts]));
    CHECK(wait_after(attempts, -1) == Approx(0.8 * pauses[attempts]));
  }
}

TEST_CASE("a time that the relay names is kept, up to an hour") {
  auto delivery = answer(delivery::Verdict::deferred);
  delivery.wait = std::chrono::seconds(100);
  CHECK(delivery::outcome_of_attempt({}, delivery, {}, 0).wait.count() == Approx(100));
  CHECK(delivery::outcome_of_attempt({.attempts = 3}, delivery, {}, 0).wait.count() == Approx(120));
  delivery.wait = std::chrono::seconds(1'000'000);
  CHECK(delivery::outcome_of_attempt({}, delivery, {}, 0).wait.count() == Approx(3600));
}

TEST_CASE("a mail without an answer is sent once more, or never again") {
  const delivery::DeliveryPolicy hold{.when_unknown = config::WhenUnknown::hold};
  const auto first = delivery::outcome_of_attempt({}, answer(delivery::Verdict::unknown), {}, 0);
  CHECK(first.state == fate::Outcome::deferred);
  CHECK(first.unknowns == 1);
  CHECK(first.attempts == 1);
  CHECK(first.wait.count() == Approx(15));
  CHECK(delivery::outcome_of_attempt({.unknowns = 1}, answer(delivery::Verdict::unknown), {}, 0).state ==
        fate::Outcome::unknown);
  const auto taken_over =
      delivery::outcome_of_attempt({.take_overs = 1}, answer(delivery::Verdict::unknown), {}, 0);
  CHECK(taken_over.state == fate::Outcome::deferred);
  CHECK(taken_over.unknowns == 2);
  CHECK(delivery::outcome_of_attempt({.unknowns = 2}, answer(delivery::Verdict::unknown), {}, 0).state ==
        fate::Outcome::unknown);
  CHECK(delivery::outcome_of_attempt({}, answer(delivery::Verdict::unknown), hold, 0).state ==
        fate::Outcome::unknown);
}

TEST_CASE("an unavailable relay costs no attempt and leaves the last answer on record") {
  auto delivery = answer(delivery::Verdict::unavailable, false);
  delivery.wait = std::chrono::seconds(4);
  const auto outcome = delivery::outcome_of_attempt({.attempts = 2}, delivery, {}, 1);
  CHECK(outcome.state == fate::Outcome::deferred);
  CHECK(outcome.attempts == 0);
  CHECK(outcome.wait.count() == Approx(4));
  CHECK(outcome.reply.empty());
  CHECK(outcome.code == 0);
  CHECK(outcome.sink.empty());
}

TEST_CASE("an answer that repeats a part of the token is not recorded") {
  const std::string token =
      "gVRNesi-opSvs3ntPfr9DzSn_JwbOD04VVIurQSCOFzzd3BOM3WBDL3SOtDjMxKLd6csSn8_p9hemXHIUxIjPg";
  CHECK(delivery::recordable_reply("5.7.1 blocked: https://app.example/?token=" + token, token) ==
        "(not shown: it repeats the token)");
  CHECK(delivery::recordable_reply("5.7.1 ... " + token.substr(70, 12), token) ==
        "(not shown: it repeats the token)");
  CHECK(delivery::recordable_reply("2.0.0 Ok: queued as 4ZrXbN2Nz1z9rqL", token) ==
        "2.0.0 Ok: queued as 4ZrXbN2Nz1z9rqL");
  CHECK(delivery::recordable_reply("", token).empty());
}

TEST_CASE("an address that has had enough mails gets no more") {
  const delivery::DeliveryPolicy policy{.per_recipient = config::parse_rate("3/1h")};
  CHECK(without_attempt({.mailed = 2}, policy) == "mail it");
  CHECK(without_attempt({.mailed = 3}, policy) == "cancelled");
  CHECK(without_attempt({.unknowns = 1, .mailed = 3}, policy) == "unknown");
  CHECK(delivery::outcome_without_attempt({.mailed = 3}, policy)->reply ==
        "the address has had 3 mails, and send.per_recipient is 3/h");
}

TEST_CASE("a time beyond the life of the link leaves one more attempt shortly before its end") {
  constexpr std::int64_t now = 1'800'000'000;
  auto delivery = answer(delivery::Verdict::deferred);
  delivery.ended = WallTime(std::chrono::seconds(now));
  delivery.wait = std::chrono::seconds(3000);
  const auto wait_of = [&](std::int64_t lives) {
    return delivery::outcome_of_attempt({.expires_at = now + lives}, delivery, {}, 0).wait.count();
  };
  CHECK(wait_of(900) == Approx(825));
  CHECK(wait_of(4000) == Approx(3000));
  // There is no time for another one, so the mail expires.
  CHECK(wait_of(80) == Approx(3000));
  delivery.wait = std::chrono::seconds(10);
  CHECK(wait_of(900) == Approx(15));
}

TEST_CASE("a mail of a short life is tried once more before a quarter of it is left") {
  constexpr std::int64_t now = 1'800'000'000;
  auto delivery = answer(delivery::Verdict::deferred);
  delivery.ended = WallTime(std::chrono::seconds(now));
  const auto wait_of = [&](int attempts, std::int64_t left, std::int64_t life) {
    return delivery::outcome_of_attempt(
               {.attempts = attempts, .created_at = now + left - life, .expires_at = now + left}, delivery,
               {}, 0)
        .wait.count();
  };
  // Of two minutes: the pause of a minute would be too long, and the last 37.5 s are of no use.
  CHECK(wait_of(2, 77, 120) == Approx(39.5));
  CHECK(wait_of(2, 40, 120) == Approx(60));
  // Of fifteen minutes: a minute and a quarter.
  CHECK(wait_of(4, 300, 900) == Approx(225));
  CHECK(wait_of(4, 320, 900) == Approx(240));
}

}  // namespace mailroom::test::delivery_policy_test
