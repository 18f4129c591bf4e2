// The claim of the fake queue, in the steps of docs/queue.md.

#include "support/fake_queue.hpp"

#include <algorithm>
#include <tuple>

#include "db/errors.hpp"

namespace mailroom::test {
namespace {

constexpr int max_attempts = 20;
constexpr int max_read = 10'000;   ///< tokens above the cursor that a claim reads
constexpr int few_others = 1'000;  ///< fewer tokens of other actions are not worth a move of the cursor

}  // namespace

claim::ClaimReply FakeQueue::claim(int session, bool delivers, const claim::ClaimRequest& request) {
  if (request.without_lock) return acknowledge_alone(session, *request.receipt);
  auto granted = request;
  std::optional<Pace> paced;
  if (is_paused()) {
    granted.limit = 0;
  } else if (rate_ && request.limit > 0) {
    paced = pace(session, request);
    granted.limit = paced->limit;
    granted.take_over = paced->take_over;
  }
  auto reply = claim_within(session, delivers, granted);
  if (is_paused()) reply.wait.reset();
  if (paced && reply.size > 0) {
    debit(reply.size);
    reply.wait = allowance(1).wait;
  } else if (paced && granted.limit == 0) {
    reply.pending = paced->seen;
    reply.last = paced->last;
    reply.wait = paced->wait;
  }
  return reply;
}

claim::ClaimReply FakeQueue::acknowledge_alone(int session, const claim::Receipt& receipt) {
  const auto batch = batches_.find(receipt.lease.batch);
  if (batch == batches_.end() || batch->second.holder != session ||
      batch->second.attempt != receipt.lease.attempt)
    throw Error(ExitCode::locked, "this session did not lease the batch");
  return {.receipt_void = is_void(receipt)};
}

/// Acknowledges, unless the batch has been taken over.
bool FakeQueue::is_void(const std::optional<claim::Receipt>& receipt) {
  if (!receipt) return false;
  const auto batch = batches_.find(receipt->lease.batch);
  if (batch != batches_.end() && batch->second.attempt > receipt->lease.attempt)
    record_late(batch->first, batch->second, *receipt);
  if (batch == batches_.end() || !is_current(batch->second, receipt->lease)) return true;
  close(batch->first, batch->second, *receipt);
  return false;
}

claim::ClaimReply FakeQueue::claim_within(int session, bool delivers, const claim::ClaimRequest& request) {
  claim::ClaimReply reply;
  if (request.limit == 0) {
    reply.receipt_void = is_void(request.receipt);
    published_ = cursor_;
    return reply;
  }
  const auto [abandoned, exhausted] = find_abandoned(session, request);
  const bool takes_over = abandoned != batches_.end();
  const auto reading = takes_over ? Reading{} : read(request.limit);
  reply.receipt_void = is_void(request.receipt);
  if (exhausted != batches_.end()) {
    bury(exhausted->first, exhausted->second, delivers);
    reply.dead = exhausted->first;
  }
  if (takes_over) {
    lease_again(abandoned->second, session);
    reply.lease = claim::Lease{abandoned->first, abandoned->second.attempt, request.queue};
    reply.size = static_cast<int>(abandoned->second.tokens.size());
    reply.more = true;
    return reply;
  }
  take(session, request, reading, reply);
  if (request.publish_cursor) published_ = cursor_;
  return reply;
}

/// Those with the fewest attempts first.
FakeQueue::Abandoned FakeQueue::find_abandoned(int session, const claim::ClaimRequest& request) {
  std::vector<Batches::iterator> open;
  for (auto batch = batches_.begin(); batch != batches_.end(); ++batch) {
    const bool acknowledged = request.receipt && request.receipt->lease.batch == batch->first &&
                              request.receipt->lease.attempt == batch->second.attempt;
    if (batch->second.is_open() && !acknowledged && request.held != batch->first) open.push_back(batch);
  }
  std::stable_sort(open.begin(), open.end(),
                   [](const auto& a, const auto& b) { return a->second.attempt < b->second.attempt; });
  Abandoned found{batches_.end(), batches_.end()};
  for (const auto& batch : open) {
    if (!is_abandoned(batch->second, session, request.take_over)) continue;
    if (batch->second.attempt < max_attempts) {
      found.batch = batch;
      break;
    }
    found.exhausted = batch;
  }
  return found;
}

FakeQueue::Window FakeQueue::read_step(std::int64_t after, int rows) const {
  Window step{.last = after};
  const auto& committed = setup_.tokens.committed;
  for (auto at = committed.upper_bound(after); at != committed.end() && step.read < rows; ++at) {
    const auto& [id, token] = *at;
    step.last = id;
    ++step.read;
    if (!is_taken(token))
      ++step.others;
    else if (is_due(token))
      step.due.push_back(id);
    else
      ++(token.is_consumed ? step.consumed : step.expired);
  }
  return step;
}

/// Reads in the steps of docs/queue.md: what is not due behind the last due token of a step is passed with
/// it.
FakeQueue::Window FakeQueue::read_window(int limit) const {
  Window window{.last = cursor_};
  const auto missing = [&] { return limit - static_cast<int>(window.due.size()); };
  int rows = actions_ ? std::min(limit * 4, max_read) : limit;
  while (missing() > 0 && !window.capped) {
    const auto step = read_step(window.last, rows);
    const int due = static_cast<int>(step.due.size());
    if (due > missing()) {
      rows = missing();
      continue;
    }
    window.due.insert(window.due.end(), step.due.begin(), step.due.end());
    window.last = step.last;
    window.read += step.read;
    window.others += step.others;
    window.consumed += step.consumed;
    window.expired += step.expired;
    if (step.read < rows) break;
    window.capped = window.read >= max_read;
    rows = std::min({rows * 4, missing() * (step.read / std::max(due, 1)), max_read - window.read});
  }
  return window;
}

FakeQueue::Late FakeQueue::find_late(std::size_t budget) const {
  Late late;
  for (const auto& gap : gaps_) {
    for (const auto id : gap) {
      const auto token = setup_.tokens.committed.find(id);
      if (late.left || token == setup_.tokens.committed.end()) continue;
      late.found.push_back(id);
      if (is_taken(token->second)) late.taken.push_back(id);
      late.left = late.taken.size() >= budget;
    }
  }
  return late;
}

FakeQueue::Ids FakeQueue::find_deferred(std::size_t room) const {
  std::vector<std::tuple<TimePoint, int, std::int64_t>> due;
  for (const auto& [token, delivery] : deliveries_) {
    if (delivery.not_before && *delivery.not_before <= now())
      due.emplace_back(*delivery.not_before, delivery.deferral, token);
  }
  std::sort(due.begin(), due.end());
  due.resize(std::min(due.size(), room));
  Ids tokens;
  for (const auto& [time, deferral, token] : due)
    tokens.push_back(token);
  return tokens;
}

/// Deferred and late tokens get what the window leaves, and at least half of the batch; of that, each gets at
/// least half if both need it.
FakeQueue::Reading FakeQueue::read(int limit) const {
  Reading reading{.window = read_window(limit)};
  auto& [window, late, deferred, seen] = reading;
  const auto room =
      static_cast<std::size_t>(std::max(limit - static_cast<int>(window.due.size()), (limit + 1) / 2));
  deferred = find_deferred(room);
  late = find_late(room - std::min(deferred.size(), room / 2));
  deferred.resize(std::min(deferred.size(), room - std::min(room, late.taken.size())));
  seen = reading.taken();
  if (seen > limit) window = read_window(limit - static_cast<int>(late.taken.size() + deferred.size()));
  return reading;
}

void FakeQueue::take(int session, const claim::ClaimRequest& request, const Reading& reading,
                     claim::ClaimReply& reply) {
  const auto& [window, late, deferred, seen] = reading;
  reply.last = late.left ? *std::max_element(late.taken.begin(), late.taken.end()) : window.last;
  reply.more = seen >= request.limit || window.capped || late.left;
  const bool takes = reply.more || request.partial || seen == 0;
  reply.pending = seen - (takes ? reading.taken() : 0);
  if (!takes) return;
  const bool only_others = seen == 0 && gaps_.empty() && window.read == window.others;
  if (only_others && window.others < few_others) return;
  forget(late.found);
  leave_gap(window.last);
  cursor_ = window.last;
  reply.skipped = window.expired + window.consumed;
  reply.skipped_expired = window.expired;
  skipped_.expired += window.expired;
  skipped_.consumed += window.consumed;
  auto tokens = window.due;
  tokens.insert(tokens.end(), late.taken.begin(), late.taken.end());
  for (const auto token : deferred) {
    deliveries_.at(token).not_before.reset();
    tokens.push_back(token);
  }
  if (tokens.empty()) return;
  std::sort(tokens.begin(), tokens.end());
  const auto id = static_cast<std::int64_t>(batches_.size()) + 1;
  batches_[id] = FakeBatch{.tokens = tokens, .holder = session, .holds = {{session, now()}}};
  reply.lease = claim::Lease{id, 1, request.queue};
  reply.size = static_cast<int>(tokens.size());
}

/// Takes `found` out of the gaps, and what no transaction can commit any more.
void FakeQueue::forget(const Ids& found) {
  for (const auto id : found) {
    for (auto& gap : gaps_)
      gap.erase(id);
  }
  const auto& tokens = setup_.tokens;
  for (auto& gap : gaps_)
    std::erase_if(
        gap, [&](std::int64_t id) { return !tokens.open.contains(id) && !tokens.committed.contains(id); });
  std::erase_if(gaps_, [](const auto& gap) { return gap.empty(); });
}

void FakeQueue::leave_gap(std::int64_t last) {
  const auto& open = setup_.tokens.open;
  std::set<std::int64_t> unseen(open.upper_bound(cursor_), open.upper_bound(std::max(cursor_, last)));
  if (!unseen.empty()) gaps_.push_back(std::move(unseen));
}

void FakeQueue::lease_again(FakeBatch& batch, int session) {
  batch.holder = session;
  batch.holds.push_back({session, now()});
  ++batch.attempt;
}

}  // namespace mailroom::test
