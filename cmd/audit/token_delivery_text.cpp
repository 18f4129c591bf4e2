// Tells accepted, ended and deferred deliveries apart, and says what follows each.

#include "cmd/audit/token_delivery_text.hpp"

#include <fmt/format.h>

#include "base/moment.hpp"
#include "base/text.hpp"
#include "cmd/audit/audit_status.hpp"
#include "cmd/events/event_text.hpp"

namespace mailroom {
namespace {

std::string prefixed(const char* separator, const std::string& text) {
  return text.empty() ? text : separator + text;
}

std::string accepted_text(const TokenDelivery& status) {
  const auto& attempt = status.decisive;
  return fmt::format("accepted {}, {}{}{}{}", times_text(status.accepted),
                     status.accepted == 1 ? "" : "last ", moment_text(attempt.at),
                     prefixed(" by ", shown_text(attempt.sink)), prefixed(": ", answer_text(attempt)));
}

/// When a deferred delivery is tried again.
std::string again_text(const TokenDelivery& status, Moment now) {
  const auto& not_before = status.delivery.not_before;
  if (!not_before && status.next == Outcome::in_open_batch) return "leased for the next attempt";
  if (!not_before || *not_before <= now) return "the next attempt is due";
  return "the next attempt in " + coarse(std::chrono::ceil<std::chrono::seconds>(*not_before - now));
}

/// An outcome that no attempt follows by itself.
std::string ended_text(const TokenDelivery& status) {
  const auto& attempt = status.decisive;
  const auto time = moment_text(attempt.at);
  const auto answer = prefixed(": ", answer_text(attempt));
  const auto sink = shown_text(attempt.sink);
  if (attempt.state == "unknown")
    return fmt::format("perhaps accepted, {}{}{}", time, prefixed(" by ", sink), answer);
  const auto* certainty = status.maybe ? "perhaps accepted" : "not accepted";
  // The time and the answer are those of the delivery before the rewind.
  if (attempt.is_cancelled_by_rewind()) return fmt::format("{}: cancelled by a rewind", certainty);
  const auto* by = attempt.state == "rejected" ? " by " : ", ";
  return fmt::format("{}: {} {}{}{}", certainty, shown_text(attempt.state), time, prefixed(by, sink), answer);
}

/// What follows a delivery that was accepted, or given up.
std::string following_text(const TokenDelivery& status, Moment now) {
  const auto* again = status.accepted > 0 ? "delivered" : "tried";
  if (status.next == Outcome::in_open_batch) return ", and leased again";
  if (status.next) return fmt::format("; it will be {} again", again);
  return status.delivery.last().state == "deferred" ? ", and deferred since: " + again_text(status, now) : "";
}

}  // namespace

std::string token_delivery_text(const TokenDelivery& status, Moment now) {
  const auto queue =
      status.is_of_other_queue ? fmt::format("in queue {}, ", shown_text(status.delivery.queue)) : "";
  if (status.accepted > 0) return queue + accepted_text(status) + following_text(status, now);
  if (status.decisive.state != "deferred") return queue + ended_text(status) + following_text(status, now);
  return fmt::format("{}{}: deferred, {}{}", queue, status.maybe ? "perhaps accepted" : "not accepted yet",
                     again_text(status, now), prefixed(": ", answer_text(status.decisive)));
}

}  // namespace mailroom
