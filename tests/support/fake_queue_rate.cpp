// The rate of the fake queue, by the generic cell rate algorithm.

#include <algorithm>

#include "support/fake_queue.hpp"

namespace mailroom::test {

FakeQueue::Allowance FakeQueue::allowance(int needed) const {
  const auto ahead = std::chrono::ceil<Milliseconds>(
      std::max<TimePoint::duration>(rate_->taken_until - now(), TimePoint::duration::zero()));
  const auto taken = static_cast<int>((ahead + rate_->gap - Milliseconds(1)) / rate_->gap);
  const auto free = rate_->gap * (rate_->burst - std::min(needed, rate_->burst));
  return {.allowed = std::max(rate_->burst - taken, 0), .wait = std::max(ahead - free, Milliseconds(0))};
}

/// An abandoned batch is leased whole, so it waits until that many tokens are allowed, or the burst is full.
/// A claim that wants a full batch waits for one if enough tokens are due; otherwise it says what it has
/// seen.
FakeQueue::Pace FakeQueue::pace(int session, const claim::ClaimRequest& request) {
  const auto one = allowance(1);
  Pace pace{.limit = std::min(request.limit, one.allowed), .take_over = request.take_over, .wait = one.wait};
  if (one.allowed == rate_->burst) return pace;
  const auto abandoned = find_abandoned(session, request).batch;
  std::optional<int> needed;
  if (abandoned != batches_.end()) needed = static_cast<int>(abandoned->second.tokens.size());
  pace.take_over = request.take_over && needed;
  if (!needed && !request.partial && pace.limit < std::min(request.limit, rate_->burst)) {
    const auto window = read_window(request.limit);
    const auto due = static_cast<int>(window.due.size());
    if (due < request.limit) pace.last = window.last;
    if (due > 0 && due < request.limit)
      return {.take_over = pace.take_over, .seen = due, .last = window.last, .wait = one.wait};
    if (due > 0) needed = request.limit;
  }
  if (!needed) return pace;
  if (one.allowed < std::min(*needed, rate_->burst)) {
    pace.limit = 0;
    pace.wait = allowance(*needed).wait;
  } else if (abandoned != batches_.end()) {
    pace.limit = request.limit;  // even if the batch is empty and the rate allows nothing
  }
  return pace;
}

void FakeQueue::debit(int tokens) {
  rate_->taken_until = std::max(rate_->taken_until, now()) + rate_->gap * tokens;
}

}  // namespace mailroom::test
