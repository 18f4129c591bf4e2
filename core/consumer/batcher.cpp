#include "consumer/batcher.hpp"

#include <algorithm>

namespace mailroom {
namespace {

/// The maximum number of rows that a claim reads.
constexpr int max_tokens = 10'000;

/// How long a polling collector keeps the receipt of a batch for the next claim.
constexpr Milliseconds longest_receipt{5};

/// True if the claim took an abandoned batch, and so none of the waiting tokens.
bool leased_again(const ClaimReply& reply) {
  return reply.lease && reply.lease->attempt > 1;
}

int max_lines(const Batcher::Options& options) {
  return std::clamp(max_tokens / std::max(options.line_limit, 1), 1, options.lines_per_claim);
}

}  // namespace

void Batcher::connected() {
  draining_ = true;
  poll_ = true;
  not_before_ = {};
  next_batch_ = {};
  deadline_.reset();
  full_lines_ = 0;
  waiting_to_ = 0;
}

Batcher::Decision Batcher::decide(TimePoint now, bool polling) const {
  const auto from = polling ? std::min(last_poll_, now) : now;
  const bool due = deadline_ && now >= *deadline_;
  const auto not_before = polling ? std::max(not_before_, next_batch_) : not_before_;
  const bool wanted = poll_ && now >= not_before;
  if (draining_ || due || wanted || now >= next_poll_) {
    const bool overdue = polling && now >= from + options_.batch_timeout;
    return {.poll = true,
            .partial = draining_ || due || overdue || options_.batch_timeout == Milliseconds(0),
            .routine = !draining_ && !poll_ && !deadline_,
            .limit = limit(),
            .from = from};
  }
  auto until = next_poll_;
  if (deadline_) until = std::min(until, *deadline_);
  if (poll_) until = std::min(until, not_before);
  return {.until = until};
}

void Batcher::claimed(const Decision& decision, const ClaimReply& reply, TimePoint started,
                      TimePoint finished) {
  last_poll_ = started;
  // Polls a little early, so that the delay including the poll itself stays within the interval.
  next_poll_ = finished + options_.poll_interval - options_.poll_interval / 10;
  // The next claim acknowledges a batch, so it is needed even if no token waits.
  full_lines_ = reply.lease || options_.line_limit == 0 ? 0 : reply.pending / options_.line_limit;
  poll_ = reply.lease.has_value() || reply.more || full_lines_ > 0;
  not_before_ = poll_ ? TimePoint{} : finished + (finished - started);
  // Tokens that arrive meanwhile wait for their batch anyway; the claim that takes them acknowledges this
  // one.
  next_batch_ =
      reply.lease && !reply.more ? started + std::min(options_.batch_timeout, longest_receipt) : TimePoint{};
  if (reply.pending > 0) {
    // The first claim that leaves tokens starts the timeout.
    if (!deadline_) deadline_ = decision.from + options_.batch_timeout;
    waiting_to_ = std::max(waiting_to_, reply.last);
  } else if (!leased_again(reply) && reply.last >= waiting_to_) {
    // The waiting tokens have been taken, unless a late token with a lower id displaced one of them. The next
    // claim sees the remainder of a full batch and starts its timeout.
    deadline_.reset();
    waiting_to_ = 0;
  }
  if (decision.partial && !reply.more) draining_ = false;
}

int Batcher::limit() const {
  return options_.line_limit * (full_lines_ > 0 ? full_lines_ : max_lines(options_));
}

}  // namespace mailroom
