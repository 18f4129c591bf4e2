#pragma once

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/output.hpp"
#include "queue/queue_session.hpp"
#include "queue/wakefulness.hpp"

namespace mailroom {

/// Carries out what Wakefulness advises, on the session that a collector has at the time.
class Waker {
 public:
  Waker(const Wakefulness::Options& options, const Clock& clock, const Output& output, Log& log)
      : wakefulness_(options), clock_(clock), output_(output), log_(log) {}

  void configure(const Wakefulness::Options& options) { wakefulness_.configure(options); }
  bool is_awake() const { return wakefulness_.is_awake(); }
  TimePoint next_look() const { return wakefulness_.next_look(); }

  /// What inserts skipped for an earlier session, this collector's or another's, is not known.
  void session_began() { wakefulness_.settle(clock_.now()); }
  /// Another collector makes way.
  void settle(QueueSession& session);
  /// True when the look that follows is the last one of settling.
  bool is_last_look(QueueSession& session);
  /// A claim that began at `started` saw `sight`.
  void looked(QueueSession& session, const Wakefulness::Sight& sight, TimePoint started);
  void settled() { wakefulness_.settled(); }
  /// Lets inserts notify again, and the other collectors look after those that did not: this one cannot.
  void hand_over(QueueSession* session);

 private:
  void stay_awake(QueueSession& session);
  void fall_asleep(QueueSession& session);

  Wakefulness wakefulness_;
  const Clock& clock_;
  const Output& output_;
  Log& log_;
};

}  // namespace mailroom
