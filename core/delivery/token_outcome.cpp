// Keeps tokens out of the replies on record, and gives a token that the answer names its own verdict.

#include "delivery/token_outcome.hpp"

#include <algorithm>
#include <cctype>

#include "delivery/reply_text.hpp"

namespace mailroom {
namespace {

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

Answer answer_to(const Answer& answer, const ComposedToken& token) {
  auto own = answer;
  own.tokens.clear();
  const auto named = std::ranges::find(answer.tokens, token.history.token, &TokenVerdict::token);
  if (named == answer.tokens.end()) return own;
  own.verdict = named->verdict;
  if (!named->reason.empty()) own.reply = named->reason;
  if (named->code) own.code = *named->code;
  return own;
}

TokenOutcome outcome_of(const Answer& answer, const ComposedToken& token, bool may_be_taken,
                        const DeliveryPolicy& policy, double jitter) {
  auto history = token.history;
  const bool adds_unknown = may_be_taken && answer.verdict != Verdict::unknown;
  if (adds_unknown) ++history.unknowns;
  auto outcome = outcome_of_attempt(history, answer, policy, jitter);
  if (adds_unknown) ++outcome.unknowns;
  if (answer.ended != WallTime{}) outcome.answered_at = answer.ended;
  // Without a sink nothing was mailed.
  if (!outcome.sink.empty()) outcome.address = token.address;
  return outcome;
}

std::string shown_reply(const std::string& reply, const std::vector<ComposedToken>& tokens) {
  auto shown = recorded_reply(reply, {});
  if (!may_repeat_token(reply)) return shown;
  for (const auto& token : tokens) {
    // The whole reply: what is left of a token where it was cut could tell it too.
    const auto checked = recordable_reply(reply, token.text);
    if (checked != reply) return checked;
  }
  return shown;
}

}  // namespace mailroom
