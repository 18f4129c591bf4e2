// Keeps a batcher for each queue, and lets wait those that are paused or have no budget now.

#include "consumer/queue_turns.hpp"

#include <utility>

namespace mailroom::consumer {

QueueTurns::QueueTurns(const std::vector<std::string>& queues, const Options& options) {
  configure(queues, options);
}

void QueueTurns::configure(const std::vector<std::string>& queues, const Options& options) {
  options_ = options;
  auto before = std::exchange(queues_, {});
  for (const auto& name : queues) {
    const auto known = std::find_if(before.begin(), before.end(),
                                    [&](const auto& queue) { return queue.definition.name == name; });
    queues_.push_back(known != before.end()
                          ? std::move(*known)
                          : Queue{.definition = {.name = name}, .batcher = Batcher(options_.batcher)});
    if (known == before.end()) queues_.back().batcher.connected();
  }
  for (auto& queue : queues_)
    configure(queue);
}

void QueueTurns::configure(Queue& queue) const {
  const auto batcher = options_.batcher_of ? options_.batcher_of(queue.definition) : options_.batcher;
  queue.batcher.configure(batcher);
  queue.line_limit = batcher.line_limit;
}

void QueueTurns::define(const std::vector<queue::QueueRecord>& definitions) {
  for (auto& queue : queues_) {
    const auto found = std::find_if(definitions.begin(), definitions.end(), [&](const auto& definition) {
      return definition.name == queue.definition.name;
    });
    queue.definition =
        found != definitions.end() ? *found : queue::QueueRecord{.name = queue.definition.name};
    configure(queue);
  }
}

void QueueTurns::connected() {
  for (auto& queue : queues_) {
    queue.batcher.connected();
    queue.hold.reset();
    queue.last = 0;
  }
}

void QueueTurns::notified() {
  for (auto& queue : queues_)
    queue.batcher.notified();
}

void QueueTurns::released() {
  for (auto& queue : queues_)
    queue.hold.reset();
  notified();
}

QueueTurns::Turn QueueTurns::next(TimePoint now, bool polling) {
  const Queue* first = nullptr;
  Turn turn{.decision = {.until = TimePoint::max()}};
  for (auto& queue : queues_) {
    if (queue.hold && now < queue.hold->until) {
      turn.decision.until = std::min(turn.decision.until, queue.hold->until);
      continue;
    }
    if (queue.hold) queue.batcher.notified();
    queue.hold.reset();
    const auto decision = queue.batcher.decide(now, polling);
    if (!decision.poll) {
      if (first == nullptr) turn.decision.until = std::min(turn.decision.until, decision.until);
      continue;
    }
    if (!queue.wanted_since) queue.wanted_since = now;
    if (first != nullptr && !is_before(queue, *first, now)) continue;
    first = &queue;
    turn = {.decision = decision, .queue = queue.definition.name, .line_limit = queue.line_limit};
  }
  if (first == nullptr) return turn;
  if (const auto until = waits_for_hold(*first, now)) return {.decision = {.until = *until}};
  return turn;
}

std::optional<TimePoint> QueueTurns::waits_for_hold(const Queue& queue, TimePoint now) const {
  std::optional<TimePoint> until;
  if (now - *queue.wanted_since >= options_.max_wait) return until;
  for (const auto& each : queues_) {
    const bool may_have_ended = each.hold && now >= each.hold->from;
    if (may_have_ended && each.definition.properties.priority > queue.definition.properties.priority)
      until = std::min(until.value_or(each.hold->until), each.hold->until);
  }
  return until;
}

bool QueueTurns::is_before(const Queue& a, const Queue& b, TimePoint now) const {
  const bool a_overdue = now - *a.wanted_since >= options_.max_wait;
  const bool b_overdue = now - *b.wanted_since >= options_.max_wait;
  if (a_overdue != b_overdue) return a_overdue;
  if (!a_overdue && a.definition.properties.priority != b.definition.properties.priority)
    return a.definition.properties.priority > b.definition.properties.priority;
  return *a.wanted_since < *b.wanted_since;
}

void QueueTurns::claimed(const Turn& turn, const claim::ClaimReply& reply, TimePoint started,
                         TimePoint finished, bool complete) {
  auto& queue = *std::find_if(queues_.begin(), queues_.end(),
                              [&](const auto& each) { return each.definition.name == turn.queue; });
  queue.batcher.claimed(turn.decision, reply, started, finished);
  queue.wanted_since.reset();
  queue.waiting = reply.pending > 0;
  queue.paused = !reply.wait;
  queue.drained =
      complete && !reply.lease && !reply.more && reply.wait.value_or(Milliseconds(0)) == Milliseconds(0);
  // A change of the queue notifies; the poll interval bounds what a lost notification costs.
  const auto longest = options_.batcher.poll_interval;
  if (reply.wait != Milliseconds(0)) {
    const auto wait = std::min(reply.wait.value_or(longest), longest);
    // The wait begins somewhere between the two, and is rounded up to milliseconds.
    queue.hold = {.from = started + wait - Milliseconds(1), .until = finished + wait};
  }
  if (reply.last > 0) queue.last = reply.last;
  last_ = reply.last;
  if (last_ > 0) {
    for (const auto& each : queues_)
      last_ = std::max(last_, each.last);
  }
}

bool QueueTurns::is_paused(const std::string& queue) const {
  return std::any_of(queues_.begin(), queues_.end(),
                     [&](const auto& each) { return each.definition.name == queue && each.paused; });
}

}  // namespace mailroom::consumer
