#include "queue/batcher.hpp"

#include <algorithm>

namespace mailroom {
namespace {

/// As many rows as a claim reads at the most.
constexpr int most_tokens = 10'000;

/// How long an awake collector keeps the receipt of a batch for the next claim.
constexpr Milliseconds longest_receipt{5};

/// Such a claim took an orphan and nothing of what waits.
bool handed_out_again(const ClaimReply& reply) {
  return reply.lease && reply.lease->attempt > 1;
}

int most_lines(const Batcher::Options& options) {
  return std::clamp(most_tokens / std::max(options.line_limit, 1), 1, options.lines_per_claim);
}

}  // namespace

void Batcher::connected() {
  draining_ = true;
  look_ = true;
  not_before_ = {};
  next_batch_ = {};
  deadline_.reset();
  full_lines_ = 0;
  waiting_to_ = 0;
}

Batcher::Decision Batcher::decide(TimePoint now, bool awake) const {
  const auto from = awake ? std::min(last_look_, now) : now;
  const bool due = deadline_ && now >= *deadline_;
  const auto not_before = awake ? std::max(not_before_, next_batch_) : not_before_;
  const bool wanted = look_ && now >= not_before;
  if (draining_ || due || wanted || now >= next_poll_) {
    const bool overdue = awake && now >= from + options_.batch_timeout;
    return {.look = true,
            .partial = draining_ || due || overdue,
            .routine = !draining_ && !look_ && !deadline_,
            .limit = limit(),
            .from = from};
  }
  auto until = next_poll_;
  if (deadline_) until = std::min(until, *deadline_);
  if (look_) until = std::min(until, not_before);
  return {.until = until};
}

void Batcher::claimed(const Decision& decision, const ClaimReply& reply, TimePoint started,
                      TimePoint finished) {
  last_look_ = started;
  // A little early, so that the interval bounds the delay together with the look itself.
  next_poll_ = finished + options_.poll_interval - options_.poll_interval / 10;
  // The claim after a batch acknowledges it, so there is one even if nothing else waits.
  full_lines_ = reply.lease || options_.line_limit == 0 ? 0 : reply.pending / options_.line_limit;
  look_ = reply.lease.has_value() || reply.more || full_lines_ > 0;
  not_before_ = look_ ? TimePoint{} : finished + (finished - started);
  // What comes meanwhile waits for its batch anyway, and the claim that takes it acknowledges this one.
  next_batch_ =
      reply.lease && !reply.more ? started + std::min(options_.batch_timeout, longest_receipt) : TimePoint{};
  if (reply.pending > 0) {
    // Only a claim that left tokens lying starts their clock, and only the first such.
    if (!deadline_) deadline_ = decision.from + options_.batch_timeout;
    waiting_to_ = std::max(waiting_to_, reply.last);
  } else if (!handed_out_again(reply) && reply.last >= waiting_to_) {
    // Whatever waited has gone, unless a token of a lower id that became visible later went in its place. The
    // remainder of a full batch is seen, and its clock started, by the next claim.
    deadline_.reset();
    waiting_to_ = 0;
  }
  if (decision.partial && !reply.more) draining_ = false;
}

int Batcher::limit() const {
  return options_.line_limit * (full_lines_ > 0 ? full_lines_ : most_lines(options_));
}

}  // namespace mailroom
