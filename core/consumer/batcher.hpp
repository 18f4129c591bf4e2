#pragma once

#include <optional>

#include "base/clock.hpp"
#include "consumer/queue_session.hpp"

namespace mailroom {

/// Decides when to poll the queue. Pure: takes times and events, returns decisions.
///
/// Full lines are emitted at once, up to the limit of one claim. A remainder is emitted when the batch
/// timeout ends, counted from its first token, or at once while draining (at the start, after a reconnect,
/// with --once). A notification means 'poll', never 'one row'. Without notifications the collector polls
/// after nine tenths of the poll interval, which bounds the delay after a lost notification or a lost
/// collector.
class Batcher {
 public:
  struct Options {
    Milliseconds batch_timeout{};
    Milliseconds poll_interval{};
    int line_limit = 0;       ///< due tokens per line
    int lines_per_claim = 1;  ///< full lines that one claim may take
  };

  explicit Batcher(const Options& options) : options_(options) {}

  struct Decision {
    bool poll = false;     ///< claim now
    bool partial = false;  ///< … even less than a full line
    bool routine = false;  ///< … only because the poll interval has ended
    int limit = 0;         ///< … at most this many tokens
    TimePoint until{};     ///< otherwise wait until then, or until a notification
    TimePoint from{};      ///< earliest arrival of tokens that the previous poll did not find
  };

  void configure(const Options& options) { options_ = options; }
  /// A new session: all waiting tokens are emitted at once.
  void connected();
  void notified() { poll_ = true; }
  /// `polling`: inserts do not notify, so a token may have arrived at any time since the last poll.
  Decision decide(TimePoint now, bool polling = false) const;
  /// Records the reply to the claim that `decision` asked for, and when it started and finished.
  void claimed(const Decision& decision, const ClaimReply& reply, TimePoint started, TimePoint finished);

 private:
  int limit() const;

  Options options_;
  bool draining_ = false;
  bool poll_ = false;
  TimePoint not_before_{};             ///< an empty poll is followed by a pause of the same duration
  TimePoint next_batch_{};             ///< while polling: earliest poll that acknowledges a partial batch
  std::optional<TimePoint> deadline_;  ///< when the waiting tokens must be emitted
  int full_lines_ = 0;                 ///< lines that the last claim saw and did not take
  std::int64_t waiting_to_ = 0;        ///< id of the last waiting token, or a later id
  TimePoint next_poll_{};
  TimePoint last_poll_{};
};

}  // namespace mailroom
