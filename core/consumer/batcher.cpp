// Derives deadlines and limits from the reply to each claim. An empty poll earns a pause of its own length.
// It reads no clock and sends nothing: the collector asks it what is next, and at what time.

#include "consumer/batcher.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace mailroom::consumer {
namespace {

/// The maximum number of rows that a claim reads.
constexpr int max_tokens = 10'000;

/// How long a polling collector keeps the receipt of a batch for the next claim.
constexpr Milliseconds longest_receipt{5};

/// True if the claim took an abandoned batch, and so none of the waiting tokens.
bool leased_again(const claim::ClaimReply& reply) {
  return reply.lease && reply.lease->attempt > 1;
}

/// Tokens that are further apart than the line cost or the longest timeout are emitted at once. A gap counts
/// as a little more than that at most, so that the first tokens of a burst outweigh it.
ArrivalGap::Seconds longest_gap(const BatchBounds& bounds) {
  return 1.5 * ArrivalGap::Seconds(std::min(bounds.line_cost, bounds.max_timeout));
}

int max_lines(const Batcher::Options& options) {
  return std::clamp(max_tokens / std::max(options.line_limit, 1), 1, options.lines_per_claim);
}

// Chosen with tests/adaptive: a longer memory notices the start of a burst later, a shorter one takes
// chance for a change of the rate.
constexpr double memory = 3;            ///< so many new gaps count as much as all earlier ones
constexpr double pauses_to_forget = 8;  ///< after a pause of so many longest gaps, earlier gaps count half

constexpr int intervals_to_rest = 10;          ///< so many poll intervals without an event come first
constexpr int resting_intervals = 8;           ///< so many are between two polls of one that rests
constexpr Milliseconds longest_rest{8'000};    ///< unless the poll interval is longer
constexpr Milliseconds mistrust{10 * 60'000};  ///< after tokens that came without a notification

/// A line of `limit` tokens is awaited for this many times the time that it takes to fill on average. Then
/// the tokens probably stay away.
constexpr double gap_patience = 3;

/// The number of tokens in a line at which the next one is worth less than the delay that it causes.
double best_fill(double lines_per_gap) {
  return std::ceil((std::sqrt(1 + 8 * lines_per_gap) - 1) / 2);
}

}  // namespace

void Batcher::configure(const Options& options) {
  options_ = options;
  choice_ = {options.line_limit, options.batch_timeout};
  if (!options.adaptive) return;
  gap_ = ArrivalGap(longest_gap(bounds()));
  choice_ = choose_batch(bounds(), gap_.mean());
}

void Batcher::connected() {
  draining_ = true;
  poll_ = true;
  not_before_ = {};
  next_batch_ = {};
  deadline_.reset();
  full_lines_ = 0;
  may_be_behind_ = false;
  known_ = 0;
  waiting_to_ = 0;
}

Batcher::Decision Batcher::decide(TimePoint now, bool polling) const {
  const auto from = polling ? std::min(last_poll_, now) : now;
  const bool due = deadline_ && now >= *deadline_;
  const auto not_before = polling ? std::max(not_before_, next_batch_) : not_before_;
  const bool wanted = poll_ && now >= not_before;
  if (draining_ || due || wanted || now >= next_poll_) {
    const bool overdue = polling && now >= from + choice_.timeout;
    const bool full = full_lines_ > 0 && is_full_early();
    const bool partial = draining_ || due || overdue || full || choice_.timeout.count() == 0;
    return {.poll = true,
            .partial = partial,
            .routine = !draining_ && !poll_ && !deadline_,
            .limit = limit(partial),
            .draining = draining_,
            .full = full,
            .from = from};
  }
  auto until = next_poll_;
  if (deadline_) until = std::min(until, *deadline_);
  if (poll_) until = std::min(until, not_before);
  return {.until = until};
}

void Batcher::claimed(const Decision& decision, const claim::ClaimReply& reply, TimePoint started,
                      TimePoint finished) {
  last_poll_ = started;
  estimate(reply, started);
  next_poll_ = finished + pause(decision, reply, finished);
  // The next claim acknowledges a batch, so it is needed even if no token waits.
  full_lines_ = full_lines(reply);
  may_be_behind_ = reply.more;
  poll_ = reply.lease.has_value() || reply.more || full_lines_ > 0;
  not_before_ = poll_ ? TimePoint{} : finished + (finished - started);
  // Tokens that arrive meanwhile wait for their batch anyway; the claim that takes them acknowledges this
  // one.
  next_batch_ = reply.lease && !reply.more
                    ? started + std::min<std::chrono::nanoseconds>(choice_.timeout, longest_receipt)
                    : TimePoint{};
  if (reply.pending > 0) {
    // The first claim that leaves tokens starts the timeout.
    if (!deadline_) waiting_from_ = decision.from;
    if (!deadline_ || options_.adaptive) deadline_ = waiting_from_ + choice_.timeout;
    waiting_to_ = std::max(waiting_to_, reply.last);
  } else if (!leased_again(reply) && reply.last >= waiting_to_) {
    // The waiting tokens have been taken, unless a late token with a lower id displaced one of them. The next
    // claim sees the remainder of a full batch and starts its timeout.
    deadline_.reset();
    waiting_to_ = 0;
  }
  if (decision.partial && !reply.more) draining_ = false;
}

std::chrono::nanoseconds Batcher::pause(const Decision& decision, const claim::ClaimReply& reply,
                                        TimePoint finished) {
  // A little early, so that the delay including the poll itself stays within the interval.
  const auto early = [](std::chrono::nanoseconds interval) { return interval - interval / 10; };
  const auto interval = options_.poll_interval;
  const bool found_unasked = decision.routine && !reply.is_idle && reply.last > idle_last_;
  const bool is_quiet = decision.routine && reply.is_idle && reply.inserts_notify && reply.released == 0 &&
                        reply.last == idle_last_ && reply.newest == idle_newest_;
  if (!is_quiet) rests_from_ = std::max(rests_from_, finished + intervals_to_rest * interval);
  if (found_unasked) rests_from_ = finished + mistrust;
  // A claim that only acknowledges sees no token.
  if (reply.last > 0) idle_last_ = reply.last;
  idle_newest_ = reply.newest;
  if (finished < rests_from_) return early(interval);
  const auto rest = early(std::max(interval, std::min(resting_intervals * interval, longest_rest)));
  if (!reply.next) return rest;
  return std::clamp<std::chrono::nanoseconds>(*reply.next, early(interval), rest);
}

int Batcher::limit(bool partial) const {
  if (full_lines_ > 0) return options_.line_limit * full_lines_;
  if (is_full_early() && !partial && !may_be_behind_) return choice_.limit;
  return options_.line_limit * max_lines(options_);
}

int Batcher::full_lines(const claim::ClaimReply& reply) const {
  if (reply.lease || choice_.limit == 0) return 0;
  return is_full_early() ? std::min(reply.pending / choice_.limit, 1) : reply.pending / choice_.limit;
}

void Batcher::estimate(const claim::ClaimReply& reply, TimePoint started) {
  if (!options_.adaptive || leased_again(reply)) return;
  const int taken = reply.lease ? reply.size : 0;
  arrived_ += std::max(taken + reply.pending - known_, 0);
  known_ = std::max(reply.pending, reply.more ? known_ - taken : 0);
  // The rest of a backlog arrived in the same time.
  if (reply.more) return;
  const auto arrived = std::exchange(arrived_, 0);
  // Nobody knows when the tokens arrived that waited for the session.
  if (draining_) return gap_.start(started);
  gap_.arrived(arrived, started);
  choice_ = choose_batch(bounds(), gap_.mean());
}

BatchBounds Batcher::bounds() const {
  return {.min_limit = options_.adaptive->min_limit,
          .max_limit = options_.line_limit,
          .min_timeout = options_.adaptive->min_timeout,
          .max_timeout = options_.batch_timeout,
          .line_cost = options_.adaptive->line_cost};
}

void ArrivalGap::arrived(int tokens, TimePoint now) {
  if (tokens == 0) return;
  const auto passed = std::max(Seconds(now - last_), Seconds(0));
  last_ = now;
  if (longest_ <= Seconds(0)) return;
  const auto gap = std::min(passed / tokens, longest_);
  const double weight = memory / (1 + passed / (pauses_to_forget * longest_));
  mean_ = (weight * mean_ + tokens * gap) / (weight + tokens);
}

BatchChoice choose_batch(const BatchBounds& bounds, std::chrono::duration<double> gap) {
  using Seconds = std::chrono::duration<double>;
  const Seconds cost = bounds.line_cost;
  const BatchChoice at_once{bounds.max_limit, {}};
  // No second token is expected in time.
  if (gap >= Seconds(bounds.max_timeout)) return at_once;
  if (gap <= Seconds(0)) return {bounds.max_limit, bounds.min_timeout};
  const double ratio = cost / gap;
  const double fill = best_fill(ratio);
  const auto limit = std::clamp<double>(fill, bounds.min_limit, bounds.max_limit);
  // Where tokens come too slowly for the least limit, the timeout ends the batches. Otherwise it ends those
  // whose tokens stay away.
  const double gaps = limit > fill ? std::sqrt(std::max(2 * ratio - 1, 1.0)) - 1 : gap_patience * (limit - 1);
  const auto timeout = std::clamp<std::chrono::nanoseconds>(
      std::chrono::round<std::chrono::nanoseconds>(gaps * gap), bounds.min_timeout, bounds.max_timeout);
  // A line of n tokens saves n - 1 lines, and costs n (n - 1) / 2 gaps. A wait of t saves t / gap lines, and
  // costs t + t² / (2 gap). Neither may be worth it, where the bounds exclude the best.
  if (cost <= std::min<Seconds>(limit * gap / 2, gap + Seconds(timeout) / 2)) return at_once;
  return {static_cast<int>(limit), timeout};
}

}  // namespace mailroom::consumer
