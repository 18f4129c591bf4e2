// The turns of the loop. Claiming ahead, reloading and stopping have files of their own.

#include "consumer/collector.hpp"

#include <algorithm>

namespace mailroom {
namespace {

constexpr Milliseconds take_over_grace{1500};
constexpr Milliseconds publish_interval{500};
constexpr Milliseconds longest_hold{100};  ///< without an acknowledgement, while nothing may be claimed
constexpr Milliseconds wake_interval{5};   ///< between two notifications of other queues' collectors

/// Observes nothing.
ConsumerObserver nobody;

/// Why the batch of `reply` was taken. `passed`: the cursor had passed all of its tokens before.
BatchTrigger trigger_of(const QueueTurns::Turn& turn, int limit, const ClaimReply& reply, bool passed) {
  if (passed || reply.lease->attempt > 1) return BatchTrigger::replay;
  const auto& decision = turn.decision;
  if (!decision.partial || decision.full || reply.size >= std::min(turn.line_limit, limit))
    return BatchTrigger::full;
  return decision.draining ? BatchTrigger::drain : BatchTrigger::timeout;
}

}  // namespace

Collector::Collector(CollectorSetup setup, CollectorLimits limits, Reload reload, Environment& environment,
                     Log& log)
    : Collector(std::move(setup), limits, std::move(reload), environment, log, nobody) {}

Collector::Collector(CollectorSetup setup, CollectorLimits limits, Reload reload, Environment& environment,
                     Log& log, ConsumerObserver& observer)
    : setup_(std::move(setup)),
      limits_(limits),
      reload_(std::move(reload)),
      environment_(environment),
      log_(log),
      observer_(observer),
      turns_(setup_.queues, setup_.turns),
      waker_(polling_state_options(), environment, log),
      signer_(setup_.key, log, environment),
      sink_(setup_.make_sink()),
      backoff_(environment.random_seed()),
      retries_(log) {}

void Collector::run() {
  try {
    collect();
  } catch (const Error&) {
    waker_.hand_over(session_.get());
    throw;
  }
  waker_.hand_over(session_.get());
}

void Collector::collect() {
  observer_.turned(environment_.now());
  connect_first();
  while (!finished()) {
    observer_.turned(environment_.now());
    // Also without a session: the new configuration may make one possible.
    is_reloading_ = environment_.take_reload() || is_reloading_;
    if (is_reloading_ && !ahead_) reload();
    try {
      if (!session_) reconnect();
      if (session_) step();
    } catch (const ConnectionLost& error) {
      if (!session_ && environment_.stop_requested()) continue;
      if (session_) retries_.worked();
      retries_.failed("connection lost", error.what(), environment_.now());
      drop_session();
    } catch (const DatabaseError& error) {
      if (!fixes(error)) throw;
    }
  }
  observer_.stopping();
  finish_open();
  acknowledge_last();
  log_totals();
}

bool Collector::fixes(const DatabaseError& error) {
  const auto fix = retry_for(error);
  if (fix == Retry::none) {
    acknowledge_before_leaving();
  } else if (fix == Retry::new_session) {
    retries_.failed(is_pid_locked(error) ? "reconnecting" : "the server accepts no writes, reconnecting",
                    reason_of(error), environment_.now());
    drop_session();
  } else if (!environment_.stop_requested()) {
    log_.warn("statement failed, retrying", {{"reason", error.what()}});
    environment_.sleep_for(backoff_.next());
  }
  return fix != Retry::none;
}

bool Collector::finished() const {
  if (ahead_ && ahead_->reply.lease) return false;
  return environment_.stop_requested() || drained_ ||
         (limits_.max_batches && batches_written_ >= *limits_.max_batches);
}

void Collector::connect_first() {
  const auto give_up = environment_.now() + limits_.wait_for_database;
  while (!environment_.stop_requested()) {
    observer_.turned(environment_.now());
    try {
      return adopt_session(setup_.connect());
    } catch (const Error& error) {
      if (environment_.stop_requested()) return;
      const bool gives_up = environment_.now() >= give_up && !is_pid_locked(error);
      if (retry_for(error) != Retry::new_session || gives_up) throw;
      retries_.failed(is_pid_locked(error) ? "reconnecting" : "waiting for the database", reason_of(error),
                      environment_.now());
    }
    environment_.sleep_for(backoff_.next());
  }
}

void Collector::reconnect() {
  environment_.sleep_for(backoff_.next());
  if (environment_.stop_requested()) return;
  adopt_session(setup_.connect());
  take_over_from_ = environment_.now() + take_over_grace;
}

void Collector::adopt_session(std::unique_ptr<QueueSession> session) {
  session_ = std::move(session);
  is_new_session_ = true;
  last_round_trip_ = environment_.now();
  turns_.connected();
  waker_.session_began();
  observer_.connected();
  if (retries_.is_news()) log_.info("connected");
}

void Collector::drop_session() {
  if (session_) observer_.disconnected();
  // Its batch is taken over, like every lease of the session.
  ahead_.reset();
  session_.reset();
}

void Collector::step() {
  const auto now = environment_.now();
  const bool poll_now = now >= waker_.next_poll();
  const bool is_new = std::exchange(is_new_session_, false);
  const auto heard = session_->take_notifications();
  if (is_new || heard == Notified::queues) turns_.define(session_->definitions());
  if (heard == Notified::queues) turns_.released();
  if (heard == Notified::drain) waker_.drain(*session_);
  if (heard != Notified::no || poll_now) turns_.notified();
  sink_->consult(*session_, is_new || heard == Notified::sinks);
  if (const auto claimed = std::exchange(ahead_, std::nullopt)) return settle(*claimed);
  if (const auto from = sink_->claims_from(); now < from) return hold(from);
  const auto turn = turns_.next(now, waker_.is_polling());
  if (turn.decision.poll) {
    poll(turn);
  } else {
    wait_until(poll_now ? turn.decision.until : std::min(turn.decision.until, waker_.next_poll()));
  }
}

void Collector::hold(TimePoint until) {
  if (open_.empty() && receipts_.empty() && limits_.once && !sink_->is_ready()) leave_tokens();
  wait_until(until);
}

void Collector::poll(const QueueTurns::Turn& turn) {
  // A claim takes one receipt, and another queue's batch is acknowledged under the lock of its own queue.
  while (receipts_.size() > 1 || (!receipts_.empty() && receipts_.front().lease.queue != turn.queue))
    acknowledge(receipts_.front());
  auto next = prepare_claim(turn);
  next.request.held = held_batch(turn.queue);
  next.reply = claim(next.request);
  next.took = environment_.now() - next.started;
  settle(next);
}

Collector::Claim Collector::prepare_claim(const QueueTurns::Turn& turn) {
  Claim claim{.turn = turn, .request = {.queue = turn.queue}, .started = environment_.now()};
  auto& request = claim.request;
  if (!receipts_.empty()) request.receipt = receipts_.front();
  // Asked before the poll: the poll sees every transaction that has ended by now.
  claim.was_last_poll = waker_.is_last_poll(*session_);
  claim.was_paused = turns_.is_paused(turn.queue);
  request.limit = std::min(turn.decision.limit, sink_->room());
  request.partial = turn.decision.partial;
  request.take_over = claim.started >= take_over_from_;
  request.publish_cursor = claim.started - last_published_ >= publish_interval;
  request.routine = turn.decision.routine;
  request.wakes = waker_.is_polling() && claim.started >= next_wake_;
  return claim;
}

void Collector::settle(const Claim& claim) {
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
  waker_.polled(*session_, {.last = turns_.last(), .waiting = turns_.waiting()}, started, sink_->is_ready());
  report(reply);
  note_pauses(turn, claim.was_paused);
  since_idle_.skipped += reply.skipped;
  if (reply.lease) {
    give(claim);
  } else if (!open_.empty()) {
    finish_oldest();
    // Another claim acknowledges it, and sees what its outcome leaves.
    turns_.notified();
  } else {
    drained_ = limits_.once && turns_.drained();
  }
  // Tokens that the claim saw and did not take are above the cursor.
  auto& passed = passed_[turn.queue];
  if (reply.pending == 0) passed = std::max(passed, reply.last);
}

void Collector::note_pauses(const QueueTurns::Turn& turn, bool was_paused) {
  const bool is_paused = turns_.is_paused(turn.queue);
  if (is_paused && !was_paused) log_.warn("the queue is paused", {{"queue", turn.queue}});
  if (!is_paused && was_paused) log_.info("the queue is resumed", {{"queue", turn.queue}});
}

PollingState::Options Collector::polling_state_options() const {
  return {.allowed = !setup_.notify_always,
          .batch_timeout = setup_.turns.batcher.batch_timeout,
          .poll_interval = setup_.turns.batcher.poll_interval};
}

ClaimReply Collector::claim(const ClaimRequest& request) {
  const auto started = environment_.now();
  const auto reply = session_->claim(request);
  note_claim(request, reply, environment_.now() - started);
  return reply;
}

void Collector::note_claim(const ClaimRequest& request, const ClaimReply& reply,
                           std::chrono::nanoseconds took) {
  if (request.receipt) receipts_.pop_front();
  last_round_trip_ = environment_.now();
  backoff_.reset();
  retries_.worked();
  observer_.claimed(
      {.queue = request.queue, .reply = reply, .only_acknowledged = request.limit == 0, .took = took});
}

void Collector::report(const ClaimReply& reply) {
  if (reply.receipt_void) {
    log_.warn("a batch was taken over before it was acknowledged: it may have been emitted twice");
  }
  if (reply.dead) {
    log_.error("batch dead-lettered after too many attempts", {{"batch", *reply.dead}});
  }
  if (reply.lease && reply.lease->attempt > 1) {
    log_.info("taking over a batch", {{"batch", reply.lease->batch}, {"attempt", reply.lease->attempt}});
  }
}

void Collector::give(const Claim& claim) {
  const auto& reply = claim.reply;
  auto next = begin_ahead(claim);
  GivenBatch given;
  try {
    given = signer_.give(*session_, *reply.lease, claim.turn.line_limit, *sink_);
  } catch (...) {
    if (next) forget_ahead();
    throw;
  }
  // Before the batch is written: no more than one is written and not acknowledged. If this fails, it is not
  // written either, and leased again.
  if (next) end_ahead(*next);
  while (!next && sink_->most_open() == 1 && !receipts_.empty())
    acknowledge(receipts_.front());
  given.times.claim = claim.took;
  const auto& queue = claim.turn.queue;
  const bool passed = given.last_token > 0 && given.last_token <= passed_[queue];
  const auto trigger = trigger_of(claim.turn, claim.request.limit, reply, passed);
  open_.push_back({.given = std::move(given), .size = reply.size, .trigger = trigger});
  const auto most = may_stay_open(reply);
  while (open_.size() > most)
    finish_oldest();
  ahead_ = std::move(next);
}

std::size_t Collector::may_stay_open(const ClaimReply& reply) const {
  if (limits_.max_batches) return 0;
  // The last of several goes on while a claim acknowledges the one before.
  if (!reply.more || sink_->room() == 0) return open_.size() > 1 ? 1 : 0;
  return sink_->most_open() - 1;
}

void Collector::finish_oldest() {
  // While this collector waits for its reader, the other collectors need notifications.
  const auto when_slow = [&] {
    waker_.hand_over(session_.get());
    environment_.note_wait(Awaited::reader);
  };
  auto batch = std::move(open_.front());
  open_.pop_front();
  observer_.delivers();
  signer_.finish(batch.given, *sink_, when_slow);
  environment_.note_wait(Awaited::nothing);
  observer_.turned(environment_.now());
  const auto& times = batch.given.times;
  is_reader_fast_ = times.write <= times.fetch + times.sign;
  const auto& receipt = receipts_.emplace_back(std::move(batch.given.receipt));
  observer_.finished({.receipt = receipt,
                      .size = batch.size,
                      .trigger = batch.trigger,
                      .times = batch.given.times,
                      .created = batch.given.created});
  const auto& counts = receipt.counts;
  if (counts.emitted > 0) ++batches_written_;
  since_idle_.batches += counts.emitted > 0 ? 1 : 0;
  since_idle_.tokens += counts.emitted;
  since_idle_.skipped += counts.skipped();
  log_.debug("batch written",
             {{"batch", receipt.lease.batch}, {"tokens", counts.emitted}, {"skipped", counts.skipped()}});
}

void Collector::finish_open() {
  while (!open_.empty())
    finish_oldest();
}

std::optional<std::int64_t> Collector::held_batch(const std::string& queue) const {
  for (const auto& open : open_) {
    const auto& lease = open.given.receipt.lease;
    if (lease.queue == queue) return lease.batch;
  }
  return std::nullopt;
}

void Collector::wait_until(TimePoint until) {
  // A batch that is held long would be emitted again after a crash, and one that the other side could not
  // take goes back to the queue, for any consumer that can deliver it.
  if (!open_.empty()) return finish_open();
  if (!receipts_.empty() && until - environment_.now() > longest_hold) return acknowledge(receipts_.front());
  log_totals();
  const auto health = last_round_trip_ + setup_.healthcheck_interval;
  if (environment_.now() >= health) {
    session_->check_health();
    last_round_trip_ = environment_.now();
    return;
  }
  observer_.waits(std::min(until, health));
  environment_.wait(session_->socket(), std::min(until, health));
}

void Collector::acknowledge(Receipt receipt) {
  auto queue = receipt.lease.queue;
  report(claim({.queue = std::move(queue), .publish_cursor = true, .receipt = std::move(receipt)}));
}

void Collector::log_totals() {
  if (since_idle_.batches + since_idle_.skipped == 0) return;
  log_.info(
      "emitted",
      {{"batches", since_idle_.batches}, {"tokens", since_idle_.tokens}, {"skipped", since_idle_.skipped}});
  since_idle_ = {};
}

}  // namespace mailroom
