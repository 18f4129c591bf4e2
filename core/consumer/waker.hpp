// What wakes a consumer: notifications, or polling where a high rate of inserts makes NOTIFY slow them down.
#pragma once

#include <cstdint>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "claim/queue_session.hpp"

namespace mailroom::consumer {

/// Decides whether a collector polls and inserts do not notify, which spares them a cluster-wide lock. Pure:
/// takes times and claim results, returns decisions.
///
/// listening: inserts notify. polling: tokens arrive fast, inserts do not notify, polls follow closely.
/// draining: inserts notify again, but open transactions may not have notified; polls follow, less and less
/// often, until those transactions have ended.
class PollingState {
 public:
  struct Options {
    bool allowed = true;  ///< false: every insert notifies
    Milliseconds batch_timeout{};
    Milliseconds poll_interval{};
  };
  enum class Advice { none, stay_polling, start_listening };

  explicit PollingState(const Options& options) : options_(options) {}

  void configure(const Options& options) { options_ = options; }
  /// What a claim saw.
  struct Sight {
    std::int64_t last = 0;  ///< all due tokens up to this id; 0: unknown
    bool waiting = false;   ///< tokens wait for their batch to fill
  };
  /// Records a claim that began at `now`.
  Advice polled(const Sight& sight, TimePoint now);
  void stays_polling(TimePoint now);
  /// Starts draining: inserts notify from now on, but earlier ones may not have.
  void start_draining(TimePoint now);
  /// Ends draining: every transaction that did not notify has ended, and a poll has followed.
  void drained() { state_ = State::listening; }

  bool is_listening() const { return state_ == State::listening; }
  bool is_polling() const { return state_ == State::polling; }
  bool is_draining() const { return state_ == State::draining; }
  /// When to poll without a notification; never while listening.
  TimePoint next_poll() const { return is_listening() ? TimePoint::max() : next_poll_; }

 private:
  enum class State { listening, polling, draining };

  /// Measures the rate and sets busy_; returns false if it is too early for a measurement.
  bool measure(std::int64_t last, TimePoint now);
  std::chrono::nanoseconds pause(bool waiting) const;

  Options options_;
  State state_ = State::listening;
  TimePoint next_poll_{};
  TimePoint draining_from_{};
  TimePoint measured_from_{};
  std::int64_t last_at_measure_ = 0;
  bool busy_ = false;
};

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
  void drain(claim::QueueSession& session);
  /// True when the next poll is the last one of draining.
  bool is_last_poll(claim::QueueSession& session);
  /// Records a claim that began at `started`, and acts on the advice. `sink_is_ready`: false keeps the
  /// collector from polling, since a slow sink would only make it stop again.
  void polled(claim::QueueSession& session, const PollingState::Sight& sight, TimePoint started,
              bool sink_is_ready);
  void drained() { polling_state_.drained(); }
  /// Lets inserts notify again, and makes the other collectors poll for inserts that did not notify. Logs
  /// errors instead of throwing them.
  void hand_over(claim::QueueSession* session);

 private:
  void stay_polling(claim::QueueSession& session);
  void start_listening(claim::QueueSession& session);

  PollingState polling_state_;
  const Clock& clock_;
  Log& log_;
};

}  // namespace mailroom::consumer
