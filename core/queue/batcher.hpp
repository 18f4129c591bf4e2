#pragma once

#include <optional>

#include "base/clock.hpp"
#include "queue/queue_session.hpp"

namespace mailroom {

/// Decides when to look into the queue. Pure: time and events in, decisions out.
///
/// A full line goes out at once, and as many as one claim may take with it. A remainder goes out when the
/// timeout since the first unseen token ends, or at once while draining (at start, after a reconnect, with
/// --once). A notification means 'look', never 'one row'. Without any, the poll interval bounds what a lost
/// notification, or a collector that has gone, costs: a look begins after nine tenths of it.
class Batcher {
 public:
  struct Options {
    Milliseconds batch_timeout{};
    Milliseconds poll_interval{};
    int line_limit = 0;       ///< due tokens a line
    int lines_per_claim = 1;  ///< full lines that one claim may take
  };

  explicit Batcher(const Options& options) : options_(options) {}

  struct Decision {
    bool look = false;     ///< claim now
    bool partial = false;  ///< … even what makes no full line
    bool routine = false;  ///< … for the poll interval alone
    int limit = 0;         ///< … so many tokens
    TimePoint until{};     ///< otherwise wait until then, or until a notification
    TimePoint from{};      ///< what the look finds, and the one before did not, has come since then
  };

  void configure(const Options& options) { options_ = options; }
  /// A new session: whatever waits goes out at once.
  void connected();
  void notified() { look_ = true; }
  /// `awake`: no notification tells when a token comes, so it may have been any time since the last look.
  Decision decide(TimePoint now, bool awake = false) const;
  /// What the claim that `decision` asked for has answered, and how long it took.
  void claimed(const Decision& decision, const ClaimReply& reply, TimePoint started, TimePoint finished);

 private:
  int limit() const;

  Options options_;
  bool draining_ = false;
  bool look_ = false;
  TimePoint not_before_{};  ///< a look that took nothing is followed by a pause as long as it took
  TimePoint next_batch_{};  ///< awake, a batch that was not full is acknowledged by a look from then on
  std::optional<TimePoint> deadline_;  ///< when the tokens that wait must go out
  int full_lines_ = 0;                 ///< that the last claim saw and left, since it might have taken more
  std::int64_t waiting_to_ = 0;        ///< the id of the last of them, or a later one
  TimePoint next_poll_{};
  TimePoint last_look_{};
};

}  // namespace mailroom
