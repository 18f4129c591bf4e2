// The order in which evidence counts, and what makes a bounce hard. Whose mail came back, and whether the
// report may suppress an address, migrations/functions/bounces.sql decides.

#include "bounce/judgement.hpp"

#include <string>

#include "bounce/evidence.hpp"
#include "bounce/reason_rules.hpp"
#include "bounce/status_code.hpp"

namespace mailroom::bounce {
namespace {

bool is_positive(const BounceEvidence& evidence) {
  const auto action = evidence.action;
  if (action.empty()) return evidence.status.starts_with("2");
  return action == "delivered" || action == "relayed" || action == "expanded" || action == "deliverable";
}

/// A reply code says more than the class of a status: a queue that gives up reports 4.4.7 after a 550.
bool is_temporary(const BounceEvidence& evidence) {
  if (evidence.code >= 400) return evidence.code < 500;
  return evidence.status.starts_with("4");
}

bool is_hard(BounceReason reason) {
  return reason == BounceReason::user_unknown || reason == BounceReason::host_unknown ||
         reason == BounceReason::has_moved || reason == BounceReason::not_accept;
}

BounceReason reason_of(const BounceEvidence& evidence) {
  const auto undetermined = BounceReason::undetermined;
  const bool is_said = !evidence.diagnostic.empty();
  const auto words =
      std::string(evidence.status) + " " + comparable_words(is_said ? evidence.diagnostic : evidence.text);
  const auto by_status = reason_of_status(evidence.status);
  // Further words, as those of a quota, count less than a status and words that agree.
  if (by_status == BounceReason::user_unknown && words_say(by_status, words)) return by_status;
  if (const auto reason = reason_of_words(words); reason != undetermined) return reason;
  // Texts for people quote more than the reason: they count where nothing better is there.
  if (is_said && by_status == undetermined) {
    const auto reason = reason_of_words(comparable_words(evidence.text));
    if (reason != undetermined) return reason;
  }
  const bool is_vague = by_status == BounceReason::policy || by_status == BounceReason::system;
  if (by_status != undetermined && !is_vague) return by_status;
  const auto by_code = reason_of_code(evidence.code);
  if (by_code == BounceReason::not_accept) return by_code;
  const auto reply = is_said ? words : comparable_words(reply_words(evidence.text));
  if (const auto reason = reason_of_vague_words(reply); reason != undetermined) return reason;
  if (is_vague) return by_status;
  if (by_code != undetermined) return by_code;
  return evidence.action == "delayed" ? BounceReason::expired : undetermined;
}

/// A status about the state of a mailbox that there is (RFC 3463, X.2.X). Some servers refuse a recipient
/// that they do not have with 5.2.1, not accepting messages.
bool is_mailbox_status(std::string_view status, bool is_at_recipient) {
  return status.starts_with("5.2.") && !(status == "5.2.1" && is_at_recipient);
}

/// An answer of SMTP of which nothing says to which command it was: those to the content may be of a filter
/// that calls the recipient unknown. A status about the address says it, or words that were no answer.
bool is_open_answer(const BounceEvidence& evidence) {
  const bool is_general = evidence.status.empty() || evidence.status.ends_with(".0.0") ||
                          evidence.status.starts_with("5.7.") || evidence.status.starts_with("5.5.");
  return is_general && evidence.code != 0 && !evidence.is_at_recipient;
}

/// `reason`, unless it says that there is no such address and something else contradicts it.
BounceReason confirmed(BounceReason reason, const BounceEvidence& evidence) {
  if (reason != BounceReason::user_unknown && reason != BounceReason::host_unknown) return reason;
  // What does not exist is the sender's.
  if (reason_of_status(evidence.status) == BounceReason::sender_rejected)
    return BounceReason::sender_rejected;
  // A mailbox that is full exists, whatever another server says of the address that it is called by.
  const auto text = comparable_words(evidence.text);
  if (words_say(BounceReason::mailbox_full, text) && !words_say(reason, text))
    return BounceReason::mailbox_full;
  const bool is_contradicted = evidence.is_after_data ||
                               is_mailbox_status(evidence.status, evidence.is_at_recipient) ||
                               (reason == BounceReason::user_unknown && is_open_answer(evidence));
  return is_contradicted ? BounceReason::filtered : reason;
}

}  // namespace

BounceJudgement judge_bounce(const BounceEvidence& evidence) {
  if (is_positive(evidence)) return {BounceReason::delivered, BounceKind::delivered};
  const auto reason = confirmed(reason_of(evidence), evidence);
  if (evidence.action == "delayed") return {reason, BounceKind::delayed};
  if (is_temporary(evidence)) return {reason, BounceKind::soft};
  if (is_hard(reason)) return {reason, BounceKind::hard};
  const bool is_known = reason != BounceReason::undetermined;
  return {reason, is_known ? BounceKind::soft : BounceKind::undetermined};
}

}  // namespace mailroom::bounce
