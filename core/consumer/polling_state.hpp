// The switch between notifications and polling, since NOTIFY slows down inserts at a high rate.
#pragma once

#include <cstdint>

#include "base/clock.hpp"

namespace mailroom {

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

}  // namespace mailroom
