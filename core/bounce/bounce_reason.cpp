// The names of kinds and reasons.

#include "bounce/bounce_reason.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace mailroom::bounce {
namespace {

struct ReasonName {
  BounceReason reason;
  const char* name;
};

constexpr std::size_t reasons = static_cast<std::size_t>(BounceReason::undetermined) + 1;

/// Each at the place of its reason.
constexpr std::array<ReasonName, reasons> reason_names{{{BounceReason::user_unknown, "user_unknown"},
                                                        {BounceReason::host_unknown, "host_unknown"},
                                                        {BounceReason::has_moved, "has_moved"},
                                                        {BounceReason::not_accept, "not_accept"},
                                                        {BounceReason::mailbox_full, "mailbox_full"},
                                                        {BounceReason::message_too_big, "message_too_big"},
                                                        {BounceReason::suspended, "suspended"},
                                                        {BounceReason::filtered, "filtered"},
                                                        {BounceReason::blocked, "blocked"},
                                                        {BounceReason::spam, "spam"},
                                                        {BounceReason::virus, "virus"},
                                                        {BounceReason::policy, "policy"},
                                                        {BounceReason::authentication, "authentication"},
                                                        {BounceReason::sender_rejected, "sender_rejected"},
                                                        {BounceReason::relaying_denied, "relaying_denied"},
                                                        {BounceReason::content, "content"},
                                                        {BounceReason::rate_limited, "rate_limited"},
                                                        {BounceReason::expired, "expired"},
                                                        {BounceReason::network, "network"},
                                                        {BounceReason::system, "system"},
                                                        {BounceReason::feedback, "feedback"},
                                                        {BounceReason::vacation, "vacation"},
                                                        {BounceReason::delivered, "delivered"},
                                                        {BounceReason::unsubscribed, "unsubscribed"},
                                                        {BounceReason::undetermined, "undetermined"}}};

constexpr bool are_in_place() {
  for (std::size_t i = 0; i < reasons; ++i) {
    if (static_cast<std::size_t>(reason_names[i].reason) != i) return false;
  }
  return true;
}
static_assert(are_in_place());

}  // namespace

const char* bounce_reason_name(BounceReason reason) {
  return reason_names.at(static_cast<std::size_t>(reason)).name;
}

std::optional<BounceReason> parse_bounce_reason(std::string_view name) {
  const auto found = std::ranges::find(reason_names, name, &ReasonName::name);
  return found == reason_names.end() ? std::nullopt : std::optional(found->reason);
}

const char* bounce_kind_name(BounceKind kind) {
  switch (kind) {
    case BounceKind::hard:
      return "hard";
    case BounceKind::soft:
      return "soft";
    case BounceKind::complaint:
      return "complaint";
    case BounceKind::delayed:
      return "delayed";
    case BounceKind::auto_reply:
      return "auto_reply";
    case BounceKind::unsubscribed:
      return "unsubscribed";
    case BounceKind::delivered:
      return "delivered";
    case BounceKind::undetermined:
      break;
  }
  return "undetermined";
}

}  // namespace mailroom::bounce
