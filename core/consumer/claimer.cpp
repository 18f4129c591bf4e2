// Puts together what a claim asks for, and tells turns and waker what came of it.

#include "consumer/claimer.hpp"

#include <algorithm>
#include <utility>

namespace mailroom::consumer {
namespace {

constexpr Milliseconds publish_interval{500};
constexpr Milliseconds wake_interval{5};  ///< between two notifications of other queues' consumers
constexpr Milliseconds release_interval{1000};

}  // namespace

Claimer::Claimer(const Options& options, SessionKeeper& sessions, Receipts& receipts, Waker& waker,
                 Pipeline& pipeline, process::Environment& environment, Log& log)
    : sessions_(sessions),
      receipts_(receipts),
      waker_(waker),
      pipeline_(pipeline),
      environment_(environment),
      log_(log),
      turns_(options.queues, options.turns) {}

bool Claimer::hear(TimePoint now) {
  auto& session = sessions_.session();
  const bool is_new = session_ != sessions_.number();
  if (is_new) {
    turns_.connected();
    waker_.session_began();
    may_release_ = true;
  }
  const bool is_poll_due = now >= waker_.next_poll();
  const auto heard = session.take_notifications();
  if (is_new || heard == claim::Notified::queues) turns_.define(sessions_.definitions());
  session_ = sessions_.number();
  if (heard == claim::Notified::queues) turns_.released();
  if (heard == claim::Notified::drain) waker_.drain(session);
  if (heard != claim::Notified::no || is_poll_due) turns_.notified();
  return is_new || heard == claim::Notified::sinks;
}

Claimer::Next Claimer::next(TimePoint now) {
  if (auto made = std::exchange(ahead_, std::nullopt); made && is_valid(*made))
    return settle(*std::move(made));
  if (const auto from = pipeline_.capacity().from; now < from) return {.claim = {}, .until = from};
  release_due(now);
  const auto turn = turns_.next(now, waker_.is_polling());
  if (turn.decision.poll) return settle(make(turn));
  const auto poll = waker_.next_poll();
  return {.claim = {}, .until = now >= poll ? turn.decision.until : std::min(turn.decision.until, poll)};
}

void Claimer::release_due(TimePoint now) {
  if (!may_release_ && !(is_busy_ && now >= next_release_)) return;
  const int released = sessions_.release();
  may_release_ = released == claim::release_limit;
  next_release_ = now + release_interval;
  // A session does not hear its own notifications.
  if (released > 0) turns_.notified();
}

MadeClaim Claimer::make(const QueueTurns::Turn& turn) {
  receipts_.fit_into_claim(turn.queue);
  auto claim = prepare(turn);
  claim.request.held = pipeline_.open_batch(turn.queue);
  claim.reply = sessions_.claim(claim.request);
  claim.took = environment_.now() - claim.started;
  receipts_.acknowledged_by(claim.request);
  return claim;
}

MadeClaim Claimer::prepare(const QueueTurns::Turn& turn) {
  MadeClaim claim{.turn = turn, .request = {.queue = turn.queue}, .started = environment_.now()};
  claim.session = sessions_.number();
  // Asked before the poll: the poll sees every transaction that has ended by now.
  claim.was_last_poll = waker_.is_last_poll(sessions_.session());
  claim.was_paused = turns_.is_paused(turn.queue);
  auto& request = claim.request;
  request.receipt = receipts_.oldest();
  request.limit = std::min(turn.decision.limit, pipeline_.capacity().tokens);
  request.partial = turn.decision.partial;
  request.take_over = sessions_.may_take_over(claim.started);
  request.publish_cursor = claim.started - last_published_ >= publish_interval;
  request.routine = turn.decision.routine;
  request.wakes = waker_.is_polling() && claim.started >= next_wake_;
  return claim;
}

void Claimer::read(const MadeClaim& claim, const std::function<void(const claim::TokenRow&)>& each,
                   bool claims_on) {
  std::optional<MadeClaim> next;
  int left = claim.reply.size;
  const auto count = [&](const claim::TokenRow& row) {
    --left;
    each(row);
  };
  const auto ask = [&]() -> const claim::ClaimRequest* {
    if (claims_on) next = prepare_ahead(claim, left);
    return next ? &next->request : nullptr;
  };
  const auto reply = sessions_.session().fetch_and_claim(*claim.reply.lease, count, ask);
  if (!reply) return;
  next->reply = *reply;
  next->took = environment_.now() - next->started;
  sessions_.note_claim(next->request, *reply, next->took);
  receipts_.acknowledged_by(next->request);
  ahead_ = std::move(next);
}

std::optional<MadeClaim> Claimer::prepare_ahead(const MadeClaim& claim, int left) {
  const auto& reply = claim.reply;
  if (!reply.more || reply.lease->attempt > 1 || !pipeline_.clears_for_claim() ||
      !receipts_.fit_claim(claim.turn.queue))
    return std::nullopt;
  const int room = pipeline_.capacity().tokens - left;
  const auto turn = turns_.next(environment_.now(), waker_.is_polling());
  if (room < 1 || !turn.decision.poll || turn.queue != claim.turn.queue) return std::nullopt;
  auto next = prepare(turn);
  next.request.limit = std::min(next.request.limit, room);
  next.request.held = reply.lease->batch;
  return next;
}

Claimer::Next Claimer::settle(MadeClaim claim) {
  const auto& turn = claim.turn;
  const auto& request = claim.request;
  const auto& reply = claim.reply;
  const auto started = claim.started;
  if (request.publish_cursor) last_published_ = started;
  if (request.wakes) next_wake_ = started + wake_interval;
  // The other queues need a poll after the question too.
  if (claim.was_last_poll) turns_.notified();
  turns_.claimed(turn, reply, started, started + claim.took, request.take_over);
  if (claim.was_last_poll) waker_.drained();
  waker_.polled(sessions_.session(), {.last = turns_.last(), .waiting = turns_.waiting()}, started,
                pipeline_.is_ready());
  may_release_ = may_release_ || reply.released == claim::release_limit;
  if (reply.released > 0) turns_.notified();
  is_busy_ = !reply.is_idle;
  note_pauses(claim);
  pipeline_.count_skipped(reply.skipped, reply.skipped_expired);
  auto& passed = passed_[turn.queue];
  claim.passed = passed;
  // Tokens that the claim saw and did not take are above the cursor.
  if (reply.pending == 0) passed = std::max(passed, reply.last);
  return {.claim = std::move(claim), .until = {}};
}

void Claimer::note_pauses(const MadeClaim& claim) {
  const auto& queue = claim.turn.queue;
  const bool is_paused = turns_.is_paused(queue);
  if (is_paused && !claim.was_paused) log_.warn("the queue is paused", {{"queue", queue}});
  if (!is_paused && claim.was_paused) log_.info("the queue is resumed", {{"queue", queue}});
}

}  // namespace mailroom::consumer
