// The pauses between attempts, the cases in which a relay may have the mail already, and what of a reply is
// kept. What a reply means, the carrier has said before (carriers/smtp/refusal); whether the relay is at
// fault, the endpoint.

#include "delivery/delivery_policy.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <fmt/format.h>

#include "bounce/judgement.hpp"
#include "bounce/status_code.hpp"
#include "delivery/reply_text.hpp"

namespace mailroom::delivery {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr std::array<int, 5> pauses{15, 30, 60, 120, 240};  ///< seconds, by the number of earlier attempts
constexpr double jitter_share = 0.2;
constexpr Seconds spread{1};                  ///< half of the longest
constexpr Seconds longest_named_pause{3600};  ///< that a relay may name

Seconds pause_after(int attempts, double jitter) {
  const auto last = static_cast<int>(pauses.size()) - 1;
  const auto pause = pauses.at(static_cast<std::size_t>(std::clamp(attempts, 0, last)));
  return Seconds(pause * (1 + jitter_share * jitter));
}

/// How long before its end a mail is still worth sending: a minute before, or a quarter of its life, it
/// counts as expired, and the outcome takes a moment to be recorded.
Seconds useless_from(const DeliveryHistory& history) {
  constexpr Seconds usual{60};
  constexpr double recorded = 1.25;
  const Seconds life = std::chrono::seconds(history.expires_at - history.created_at);
  return recorded * (history.created_at == 0 ? usual : std::min(usual, life / 4));
}

/// The wait until the relay's own time, or else our own; or until the last moment at which the mail is still
/// worth sending, if that comes before.
Seconds fitting_pause(Seconds pause, Seconds named, const DeliveryHistory& history, WallTime now) {
  constexpr Seconds least{5};
  const auto wanted = std::max(pause, named);
  if (history.expires_at == 0 || now == WallTime{}) return wanted;
  const Seconds left =
      std::chrono::seconds(history.expires_at) - useless_from(history) - now.time_since_epoch();
  if (wanted <= left) return wanted;
  return left > (named > pause ? pause : least) ? left : wanted;
}

int may_have_been_mailed(const DeliveryHistory& history) {
  return history.unknowns + history.take_overs;
}

/// False if an attempt now could repeat one, and that is not wanted. A consumer that died is no attempt: its
/// mails are sent again, however often, unless none may be.
bool may_be_sent(const DeliveryHistory& history, const DeliveryPolicy& policy) {
  if (policy.when_unknown == config::WhenUnknown::resend) return true;
  return history.unknowns == 0 && (policy.is_recognised || history.take_overs == 0);
}

/// True if a mail is sent again after an attempt without an answer.
bool may_be_sent_again(const DeliveryHistory& history, const DeliveryPolicy& policy) {
  return policy.when_unknown == config::WhenUnknown::resend && history.unknowns < policy.resends;
}

/// True of a mail that is refused again and again, for its sender for example, while others are taken. The
/// codes from 420 on are those of SMTP that ask to try later.
bool is_refused_for_good(const DeliveryHistory& history, const Answer& answer) {
  constexpr int most = 5;
  const bool is_lasting = answer.code < 420 || answer.code >= 500;
  return answer.is_about_some && is_lasting && history.attempts + 1 >= most;
}

claim::TokenOutcome without_attempt(const DeliveryHistory& history, fate::Outcome state, std::string reason) {
  if (may_have_been_mailed(history) > 0) {
    state = fate::Outcome::unknown;
    reason = fmt::format("not tried again, an earlier attempt may have been accepted: {}", reason);
  }
  return {.token = history.token,
          .action = history.action,
          .state = state,
          .unknowns = history.take_overs,
          .counted_as = history.counted_as,
          .reply = std::move(reason)};
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

DeliveryHistory history_of(const claim::TokenRow& row, int take_overs, const char* defect) {
  return {.token = row.id,
          .action = row.action->name,
          .state = row.state,
          .defect = defect,
          .attempts = row.attempts,
          .unknowns = row.unknowns,
          .take_overs = take_overs,
          .newer = row.newer,
          .created_at = row.created_at,
          .expires_at = row.expires_at,
          .counted_as = std::string(row.counted_as),
          .mailed = row.mailed,
          .suppressed = std::string(row.suppressed),
          .has_topic = row.content != nullptr && !row.content->topic.empty()};
}

std::optional<claim::TokenOutcome> outcome_without_attempt(const DeliveryHistory& history,
                                                           const DeliveryPolicy& policy) {
  switch (history.state) {
    case claim::TokenState::expired:
      return without_attempt(history, fate::Outcome::expired, "the token has expired");
    case claim::TokenState::consumed:
      return without_attempt(history, fate::Outcome::cancelled, "the token has been consumed");
    case claim::TokenState::wrong_status:
      return without_attempt(history, fate::Outcome::cancelled, fate::wrong_status_reason);
    case claim::TokenState::due:
      break;
  }
  if (history.defect != nullptr) return without_attempt(history, fate::Outcome::rejected, history.defect);
  if (!history.suppressed.empty()) {
    return without_attempt(history, fate::Outcome::cancelled, suppressed_reason(history.suppressed));
  }
  if (policy.supersede && history.newer) {
    return without_attempt(history, fate::Outcome::cancelled,
                           fmt::format("superseded by token {}", *history.newer));
  }
  if (policy.per_recipient && history.mailed >= policy.per_recipient->count) {
    return without_attempt(history, fate::Outcome::cancelled,
                           fmt::format("the address has had {} mails, and send.per_recipient is {}",
                                       history.mailed, config::format_rate(*policy.per_recipient)));
  }
  if (!may_be_sent(history, policy)) {
    return claim::TokenOutcome{.token = history.token,
                               .action = history.action,
                               .state = fate::Outcome::unknown,
                               .unknowns = history.take_overs,
                               .counted_as = history.counted_as,
                               .reply = "an earlier attempt was cut off before its answer"};
  }
  return std::nullopt;
}

std::string suppressed_reason(std::string_view why) {
  return fmt::format("the address is suppressed: {}", why);
}

claim::TokenOutcome withheld_outcome(const DeliveryHistory& history, fate::Outcome state,
                                     std::string reason) {
  auto outcome = without_attempt(history, state, std::move(reason));
  if (state == fate::Outcome::deferred) outcome.wait = std::chrono::minutes(1);
  return outcome;
}

claim::TokenOutcome unanswered_outcome(const DeliveryHistory& history, Milliseconds wait, bool may_be_taken) {
  return {.token = history.token,
          .action = history.action,
          .state = fate::Outcome::deferred,
          .unknowns = history.take_overs + (may_be_taken ? 1 : 0),
          .wait = wait,
          .counted_as = history.counted_as};
}

claim::TokenOutcome outcome_of_attempt(const DeliveryHistory& history, const Answer& answer,
                                       const DeliveryPolicy& policy, double jitter) {
  claim::TokenOutcome outcome{.token = history.token,
                              .action = history.action,
                              .attempts = answer.counts() ? 1 : 0,
                              .unknowns = history.take_overs,
                              .sink = answer.sink,
                              .counted_as = history.counted_as,
                              .code = answer.code,
                              .reply = answer.reply};
  const Seconds named = std::min<Seconds>(answer.wait.value_or(Milliseconds(0)), longest_named_pause);
  switch (answer.verdict) {
    case Verdict::accepted:
      outcome.state = fate::Outcome::accepted;
      break;
    case Verdict::rejected:
      // The attempt before may have been accepted, although the relay refuses the mail now.
      outcome.state = may_have_been_mailed(history) > 0 ? fate::Outcome::unknown : fate::Outcome::rejected;
      break;
    case Verdict::deferred:
      if (is_refused_for_good(history, answer)) {
        outcome.state = may_have_been_mailed(history) > 0 ? fate::Outcome::unknown : fate::Outcome::rejected;
        break;
      }
      outcome.state = fate::Outcome::deferred;
      // Those that waited for their turn together must not come back together.
      outcome.wait = fitting_pause(
          answer.waits_for_turn ? named + spread * (1 + jitter) : pause_after(history.attempts, jitter),
          named, history, answer.ended);
      break;
    case Verdict::unknown:
      ++outcome.unknowns;
      outcome.state = may_be_sent_again(history, policy) ? fate::Outcome::deferred : fate::Outcome::unknown;
      outcome.wait = pause_after(history.attempts, jitter);
      break;
    case Verdict::unavailable:
      outcome.state = fate::Outcome::deferred;
      // The next probe is another mail: the relay may have meant this one.
      outcome.wait = answer.refusal.empty() ? named : std::max(named, pause_after(0, jitter));
      break;
  }
  if (outcome.attempts == 0 && outcome.state == fate::Outcome::deferred) {
    // The answer is about the relay, and must not replace one about this mail.
    outcome.sink.clear();
    outcome.code = 0;
    outcome.reply.clear();
  }
  return outcome;
}

std::string recordable_reply(const std::string& reply, std::string_view token) {
  constexpr std::size_t telling = 12;
  for (std::size_t i = 0; i + telling <= token.size(); ++i) {
    if (reply.find(token.substr(i, telling)) != std::string::npos) return "(not shown: it repeats the token)";
  }
  return reply;
}

Answer answer_to(const Answer& answer, const ComposedToken& token) {
  auto own = answer;
  own.tokens.clear();
  const auto named = std::ranges::find(answer.tokens, token.history.token, &TokenVerdict::token);
  if (named == answer.tokens.end()) return own;
  own.verdict = named->verdict;
  if (!named->reason.empty()) own.reply = named->reason;
  if (named->code) own.code = *named->code;
  own.is_about_some = named->is_about_some;
  return own;
}

namespace {

/// Of a mail that was refused since its address does not exist or takes no mail; empty for any other answer.
std::string reason_to_suppress(const Answer& answer, const ComposedToken& token) {
  if (answer.verdict != Verdict::rejected || token.address.empty()) return {};
  const auto status = bounce::find_status(answer.reply);
  const auto judgement = bounce::judge_bounce(
      {.action = "failed", .status = status, .code = answer.code, .diagnostic = answer.reply, .text = {}});
  return judgement.kind == bounce::BounceKind::hard ? bounce::bounce_reason_name(judgement.reason) : "";
}

}  // namespace

claim::TokenOutcome outcome_of(const Answer& answer, const ComposedToken& token, bool may_be_taken,
                               const DeliveryPolicy& policy, double jitter) {
  auto history = token.history;
  const bool adds_unknown = may_be_taken && answer.verdict != Verdict::unknown;
  if (adds_unknown) ++history.unknowns;
  auto outcome = outcome_of_attempt(history, answer, policy, jitter);
  if (adds_unknown) ++outcome.unknowns;
  if (answer.ended != WallTime{}) outcome.answered_at = answer.ended;
  // Without a sink nothing was mailed.
  if (outcome.sink.empty()) return outcome;
  outcome.address = token.address;
  outcome.message_id = answer.message_id.value_or(token.message_id);
  outcome.templates = token.templates;
  if (policy.suppress_refused) outcome.suppress = reason_to_suppress(answer, token);
  if (answer.verdict == Verdict::accepted || outcome.unknowns > 0) outcome.content_hash = token.content_hash;
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

}  // namespace mailroom::delivery
