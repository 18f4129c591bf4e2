// The names of kinds and reasons.

#include "reasons/bounce_reason.hpp"

namespace mailroom {

const char* bounce_reason_name(BounceReason reason) {
  switch (reason) {
    case BounceReason::user_unknown:
      return "user_unknown";
    case BounceReason::host_unknown:
      return "host_unknown";
    case BounceReason::has_moved:
      return "has_moved";
    case BounceReason::not_accept:
      return "not_accept";
    case BounceReason::mailbox_full:
      return "mailbox_full";
    case BounceReason::message_too_big:
      return "message_too_big";
    case BounceReason::suspended:
      return "suspended";
    case BounceReason::filtered:
      return "filtered";
    case BounceReason::blocked:
      return "blocked";
    case BounceReason::spam:
      return "spam";
    case BounceReason::virus:
      return "virus";
    case BounceReason::policy:
      return "policy";
    case BounceReason::authentication:
      return "authentication";
    case BounceReason::sender_rejected:
      return "sender_rejected";
    case BounceReason::relaying_denied:
      return "relaying_denied";
    case BounceReason::content:
      return "content";
    case BounceReason::rate_limited:
      return "rate_limited";
    case BounceReason::expired:
      return "expired";
    case BounceReason::network:
      return "network";
    case BounceReason::system:
      return "system";
    case BounceReason::feedback:
      return "feedback";
    case BounceReason::vacation:
      return "vacation";
    case BounceReason::delivered:
      return "delivered";
    case BounceReason::undetermined:
      break;
  }
  return "undetermined";
}

const char* bounce_kind_name(BounceKind kind) {
  switch (kind) {
    case BounceKind::hard:
      return "hard";
    case BounceKind::soft:
      return "soft";
    case BounceKind::complaint:
      return "complaint";
    case BounceKind::auto_reply:
      return "auto_reply";
    case BounceKind::delivered:
      return "delivered";
    case BounceKind::undetermined:
      break;
  }
  return "undetermined";
}

}  // namespace mailroom
