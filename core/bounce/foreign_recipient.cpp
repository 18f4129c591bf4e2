// The reasons of Sisimai (https://libsisimai.org/en/reason/) in our words.

#include "bounce/foreign_recipient.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "bounce/delivery_status.hpp"
#include "bounce/judgement.hpp"
#include "bounce/status_code.hpp"

namespace mailroom {
namespace {

constexpr std::array<std::pair<std::string_view, BounceReason>, 27> names{{
    {"userunknown", BounceReason::user_unknown},
    {"hostunknown", BounceReason::host_unknown},
    {"hasmoved", BounceReason::has_moved},
    {"notaccept", BounceReason::not_accept},
    {"mailboxfull", BounceReason::mailbox_full},
    {"systemfull", BounceReason::mailbox_full},
    {"mesgtoobig", BounceReason::message_too_big},
    {"exceedlimit", BounceReason::message_too_big},
    {"suspend", BounceReason::suspended},
    {"filtered", BounceReason::filtered},
    {"blocked", BounceReason::blocked},
    {"spamdetected", BounceReason::spam},
    {"virusdetected", BounceReason::virus},
    {"policyviolation", BounceReason::policy},
    {"securityerror", BounceReason::policy},
    {"authfailure", BounceReason::authentication},
    {"rejected", BounceReason::sender_rejected},
    {"norelaying", BounceReason::relaying_denied},
    {"contenterror", BounceReason::content},
    {"toomanyconn", BounceReason::rate_limited},
    {"speeding", BounceReason::rate_limited},
    {"expired", BounceReason::expired},
    {"networkerror", BounceReason::network},
    {"systemerror", BounceReason::system},
    {"mailererror", BounceReason::system},
    {"syntaxerror", BounceReason::system},
    {"delivered", BounceReason::delivered},
}};

BounceReason reason_named(std::string_view name) {
  const auto* const found =
      std::find_if(names.begin(), names.end(), [&](const auto& pair) { return pair.first == name; });
  return found == names.end() ? BounceReason::undetermined : found->second;
}

/// Sisimai makes up a status such as 5.0.911 where there is none.
std::string true_status(std::string_view text) {
  auto status = find_status(text);
  return status.size() == 7 && status.substr(1, 4) == ".0.9" ? std::string() : status;
}

bool is_permanent_refusal(BounceReason reason) {
  return reason == BounceReason::user_unknown || reason == BounceReason::host_unknown ||
         reason == BounceReason::has_moved || reason == BounceReason::not_accept;
}

}  // namespace

BounceRecipient judge_foreign(const ForeignRecipient& foreign) {
  BounceRecipient recipient;
  recipient.address = report_address(foreign.address);
  recipient.status = true_status(foreign.status);
  recipient.diagnostic =
      sound_utf8(std::string_view(printable(foreign.diagnostic)).substr(0, bounce_limits::max_diagnostic));
  recipient.code = find_reply_code(foreign.diagnostic);
  const auto judgement = judge_bounce({.action = foreign.action,
                                       .status = recipient.status,
                                       .code = recipient.code,
                                       .diagnostic = recipient.diagnostic,
                                       .text = "",
                                       .is_at_recipient = foreign.command == "RCPT"});
  recipient.reason = judgement.reason;
  recipient.kind = judgement.kind;
  const auto theirs = reason_named(foreign.reason);
  const bool is_doubtful = judgement.kind == BounceKind::hard && theirs != BounceReason::undetermined &&
                           !is_permanent_refusal(theirs);
  const bool is_open = judgement.reason == BounceReason::undetermined;
  if (theirs == BounceReason::undetermined || !(is_open || is_doubtful)) return recipient;
  recipient.reason = theirs;
  const bool is_temporary = is_open && judgement.kind == BounceKind::soft;
  recipient.kind = theirs == BounceReason::delivered               ? BounceKind::delivered
                   : is_permanent_refusal(theirs) && !is_temporary ? BounceKind::hard
                                                                   : BounceKind::soft;
  return recipient;
}

}  // namespace mailroom
