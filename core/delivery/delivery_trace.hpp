// The step from what the sink knows of a token and of an answer to what its trace says of them: never an
// address, a token, a code or a reply.
#pragma once

#include "claim/queue_session.hpp"
#include "consumer/consumer_observer.hpp"
#include "delivery/answer.hpp"
#include "trace/mail_tracer.hpp"

namespace mailroom {

TracedToken traced_token(const TokenRow& row, const Lease& lease);

/// What an attempt came to; nullopt if the answer is about none.
std::optional<CarriedToken> carried_token(const Answer& answer);

/// Tells the tracer of claims.
class ClaimTrace final : public ConsumerObserver {
 public:
  /// `tracer` must outlive this.
  explicit ClaimTrace(MailTracer& tracer) : tracer_(tracer) {}

  void claimed(const ObservedClaim& claim) override;

 private:
  MailTracer& tracer_;
};

}  // namespace mailroom
