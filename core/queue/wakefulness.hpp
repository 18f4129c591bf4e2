#pragma once

#include <cstdint>

#include "base/clock.hpp"

namespace mailroom {

/// Decides whether a collector keeps inserts from notifying, which spares them a lock of the whole cluster,
/// and looks by itself instead. Pure: time and what claims saw in, decisions out.
///
/// asleep: inserts notify. awake: while tokens come fast they do not, and a look follows the last one soon.
/// settling: they notify again, but transactions may be open that have not; looks follow, less and less
/// often, until these are over.
class Wakefulness {
 public:
  struct Options {
    bool allowed = true;  ///< false: every insert notifies
    Milliseconds batch_timeout{};
    Milliseconds poll_interval{};
  };
  enum class Advice { none, stay_awake, fall_asleep };

  explicit Wakefulness(const Options& options) : options_(options) {}

  void configure(const Options& options) { options_ = options; }
  /// What a claim saw that began at `now`.
  struct Sight {
    std::int64_t last = 0;  ///< all due tokens up to this id; nothing if it is 0
    bool waiting = false;   ///< tokens wait for their batch to fill
  };
  Advice looked(const Sight& sight, TimePoint now);
  void stays_awake(TimePoint now);
  /// Inserts notify from now on, or did not before for all that is known.
  void settle(TimePoint now);
  /// Nobody is left who has not notified, and a look has followed.
  void settled() { state_ = State::asleep; }

  bool is_asleep() const { return state_ == State::asleep; }
  bool is_awake() const { return state_ == State::awake; }
  bool is_settling() const { return state_ == State::settling; }
  /// When to look without a notification; never while asleep.
  TimePoint next_look() const { return is_asleep() ? TimePoint::max() : next_look_; }

 private:
  enum class State { asleep, awake, settling };

  /// True when the rate has been measured anew; busy_ tells of it.
  bool measure(std::int64_t last, TimePoint now);
  std::chrono::nanoseconds pause(bool waiting) const;

  Options options_;
  State state_ = State::asleep;
  TimePoint next_look_{};
  TimePoint settling_from_{};
  TimePoint measured_from_{};
  std::int64_t last_at_measure_ = 0;
  bool busy_ = false;
};

}  // namespace mailroom
