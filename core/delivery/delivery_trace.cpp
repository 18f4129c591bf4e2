// The reply of the other side stays out: it may repeat an address or a token.

#include "delivery/delivery_trace.hpp"

namespace mailroom {

TracedToken traced_token(const TokenRow& row, const Lease& lease) {
  return {.traceparent = row.trace.traceparent,
          .queue = lease.queue,
          .action = row.action->name,
          .token = row.id,
          .message = row.message.value_or(0),
          .asked_at = row.trace.asked_at,
          .was_tried = row.trace.was_tried || row.attempts > 0 || row.unknowns > 0 || lease.attempt > 1};
}

std::optional<CarriedToken> carried_token(const Answer& answer) {
  if (!answer.was_tried || answer.took.count() == 0) return std::nullopt;
  return CarriedToken{.outcome = verdict_name(answer.verdict),
                      .has_failed = answer.verdict != Verdict::accepted,
                      .code = answer.code,
                      .sink = answer.sink,
                      .ended = answer.ended,
                      .took = answer.took};
}

void ClaimTrace::claimed(const ObservedClaim& claim) {
  const auto& reply = claim.reply;
  if (reply.lease) tracer_.claimed(claim.queue, reply.lease->batch, reply.size, span_now(), claim.took);
}

}  // namespace mailroom
