// The part of PollingState that talks to the database: it turns notifications of inserts off and on.
#pragma once

#include "base/clock.hpp"
#include "base/log.hpp"
#include "claim/queue_session.hpp"
#include "consumer/polling_state.hpp"

namespace mailroom {

/// Carries out the advice of PollingState on the collector's current session.
class Waker {
 public:
  Waker(const PollingState::Options& options, const Clock& clock, Log& log)
      : polling_state_(options), clock_(clock), log_(log) {}

  void configure(const PollingState::Options& options) { polling_state_.configure(options); }
  bool is_polling() const { return polling_state_.is_polling(); }
  TimePoint next_poll() const { return polling_state_.next_poll(); }

  /// Starts draining: inserts may not have notified because of an earlier session of any collector.
  void session_began() { polling_state_.start_draining(clock_.now()); }
  /// Another collector has stopped polling.
  void drain(QueueSession& session);
  /// True when the next poll is the last one of draining.
  bool is_last_poll(QueueSession& session);
  /// Records a claim that began at `started`, and acts on the advice. `sink_is_ready`: false keeps the
  /// collector from polling, since a slow sink would only make it stop again.
  void polled(QueueSession& session, const PollingState::Sight& sight, TimePoint started, bool sink_is_ready);
  void drained() { polling_state_.drained(); }
  /// Lets inserts notify again, and makes the other collectors poll for inserts that did not notify. Logs
  /// errors instead of throwing them.
  void hand_over(QueueSession* session);

 private:
  void stay_polling(QueueSession& session);
  void start_listening(QueueSession& session);

  PollingState polling_state_;
  const Clock& clock_;
  Log& log_;
};

}  // namespace mailroom
