// Applies the rules for mails to lines, and keeps tokens out of the replies on record.

#include "delivery/line_outcome.hpp"

#include <algorithm>
#include <cctype>

#include "delivery/reply_text.hpp"

namespace mailroom {
namespace {

MailOutcome outcome_named(ParcelVerdict verdict) {
  switch (verdict) {
    case ParcelVerdict::accepted:
      return MailOutcome::accepted;
    case ParcelVerdict::deferred:
      return MailOutcome::deferred;
    case ParcelVerdict::rejected:
      return MailOutcome::rejected;
    case ParcelVerdict::unknown:
      return MailOutcome::unknown;
    case ParcelVerdict::unavailable:
      break;
  }
  return MailOutcome::unavailable;
}

/// True if `text` has as many characters of base64url in a row as would tell a token.
bool may_repeat_token(std::string_view text) {
  constexpr int telling = 12;
  int run = 0;
  return std::ranges::any_of(text, [&](char c) {
    const bool is_part = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
    run = is_part ? run + 1 : 0;
    return run >= telling;
  });
}

}  // namespace

const char* parcel_verdict_name(ParcelVerdict verdict) {
  return mail_outcome_name(outcome_named(verdict));
}

Delivery delivery_of(const Answer& answer, const CarriedToken& token) {
  const auto own = std::ranges::find(answer.tokens, token.history.token, &TokenVerdict::token);
  const bool has_own = own != answer.tokens.end();
  Delivery delivery;
  delivery.outcome = outcome_named(has_own ? own->verdict : answer.verdict);
  delivery.counts = delivery.outcome != MailOutcome::unavailable;
  delivery.code = answer.code;
  delivery.reply = has_own && !own->reason.empty() ? own->reason : answer.reply;
  delivery.relay = answer.sink;
  if (answer.wait) delivery.retry_after = std::chrono::ceil<std::chrono::seconds>(*answer.wait);
  delivery.throttled = answer.throttled;
  delivery.waits_for_turn = answer.throttled && answer.wait.has_value();
  delivery.took = answer.took;
  delivery.ended = answer.ended;
  return delivery;
}

TokenOutcome outcome_of(const Delivery& delivery, const CarriedToken& token, bool may_be_taken,
                        const DeliveryPolicy& policy, double jitter) {
  auto history = token.history;
  const bool adds_unknown = may_be_taken && delivery.outcome != MailOutcome::unknown;
  if (adds_unknown) ++history.unknowns;
  auto outcome = outcome_of_attempt(history, delivery, policy, jitter);
  if (adds_unknown) ++outcome.unknowns;
  if (delivery.ended != WallTime{}) outcome.answered_at = delivery.ended;
  return outcome;
}

std::string shown_reply(const std::string& reply, const std::vector<CarriedToken>& tokens) {
  auto shown = recorded_reply(reply, {});
  if (!may_repeat_token(reply)) return shown;
  for (const auto& token : tokens) {
    // The whole reply: what is left of a token where it was cut could tell it too.
    const auto checked = recordable_reply(reply, token.text);
    if (checked != reply) return checked;
  }
  return shown;
}

Milliseconds resend_delay(int tries, double chance) {
  constexpr Milliseconds shortest{250};
  constexpr Milliseconds longest{5000};
  auto delay = shortest;
  for (int i = 1; i < tries && delay < longest; ++i)
    delay = std::min(2 * delay, longest);
  return delay - std::chrono::duration_cast<Milliseconds>(delay * (0.2 * std::clamp(chance, 0.0, 1.0)));
}

}  // namespace mailroom
