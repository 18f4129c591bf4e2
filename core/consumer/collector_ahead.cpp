// Claims a batch while the one before is read.

#include "consumer/collector.hpp"

namespace mailroom {

std::optional<Collector::Claim> Collector::begin_ahead(const Claim& claim) {
  const auto& reply = claim.reply;
  const bool is_wanted = reply.more && reply.lease->attempt == 1 && is_reader_fast_ && !is_reloading_ &&
                         !limits_.max_batches && !environment_.stop_requested();
  // A sink with several open batches works while a claim is made.
  if (!is_wanted || sink_->most_open() > 1 || receipts_.size() > 1) return std::nullopt;
  if (!receipts_.empty() && receipts_.front().lease.queue != claim.turn.queue) return std::nullopt;
  const auto turn = turns_.next(environment_.now(), waker_.is_polling());
  if (!turn.decision.poll || turn.queue != claim.turn.queue || !session_->can_claim_ahead(reply))
    return std::nullopt;
  auto next = prepare_claim(turn);
  next.request.held = reply.lease->batch;
  session_->begin_claim(next.request);
  return next;
}

void Collector::end_ahead(Claim& next) {
  next.reply = session_->end_claim();
  next.took = environment_.now() - next.started;
  note_claim(next.request, next.reply, next.took);
}

void Collector::forget_ahead() {
  try {
    session_->end_claim();
  } catch (const Error& error) {
    log_.debug("the claim failed that was made ahead", {{"reason", error.what()}});
  }
}

}  // namespace mailroom
