// When a collector claims, and how much: fixed values, or a choice within ranges by how fast tokens arrive.
//
// It sees one queue. It does not choose between queues (queue_turns), does not claim, and has neither clock
// nor database: it takes times and the replies to claims.
#pragma once

#include <chrono>
#include <optional>

#include "base/clock.hpp"
#include "claim/queue_session.hpp"

namespace mailroom::consumer {

/// Estimates the mean gap between the arrivals of two tokens. Pure: takes times and counts.
///
/// The estimate is an exponentially weighted mean with one weight for each token, so it follows a change of
/// the rate within a dozen tokens, whether these take milliseconds or hours. A long pause makes the gaps
/// before it count less. It counts as the longest gap itself, since all gaps that are longer than any wait
/// lead to the same choice.
class ArrivalGap {
 public:
  using Seconds = std::chrono::duration<double>;

  /// Until tokens have arrived, the mean is the longest gap.
  explicit ArrivalGap(Seconds longest = {}) : longest_(longest), mean_(longest) {}

  /// Tokens before `now` do not count.
  void start(TimePoint now) { last_ = now; }
  /// `tokens` have arrived since the last call with any.
  void arrived(int tokens, TimePoint now);
  Seconds mean() const { return mean_; }

 private:
  Seconds longest_;
  Seconds mean_;
  TimePoint last_{};
};

/// Between which values a collector chooses limit and timeout of a batch, and what it weighs.
struct BatchBounds {
  int min_limit = 0;
  int max_limit = 0;
  Milliseconds min_timeout{};
  Milliseconds max_timeout{};
  Milliseconds line_cost{};  ///< how much delay, summed over tokens, one line saved is worth
};

struct BatchChoice {
  int limit = 0;                       ///< this many tokens are a full batch
  std::chrono::nanoseconds timeout{};  ///< from the first token; 0: emit at once
};

/// The choice that minimises line_cost x lines + sum of delays, if the next tokens arrive at random, `gap`
/// apart on average (a Poisson process). docs/batching.md derives it.
///
/// With a limit of n tokens, a batch costs line_cost + gap x (0 + 1 + … + (n - 1)), so n + 1 cost less per
/// token than n while line_cost / gap > n (n + 1) / 2: the square root of the economic order quantity (F. W.
/// Harris, 1913), for whole numbers. With a timeout of t, a batch has 1 + t / gap tokens, whose delays sum up
/// to t + t² / (2 gap); the cost per token is least at t / gap = sqrt(2 line_cost / gap - 1) - 1.
BatchChoice choose_batch(const BatchBounds& bounds, std::chrono::duration<double> gap);

/// Decides when to poll the queue. Pure: takes times and events, returns decisions.
///
/// Full lines are emitted at once, up to the limit of one claim. A remainder is emitted when the batch
/// timeout ends, counted from its first token, or at once while draining (at the start, after a reconnect,
/// with --once). A notification means 'poll', never 'one row'. Without notifications the collector polls
/// after nine tenths of the poll interval, which bounds the delay after a lost notification or a lost
/// collector. Where nothing has happened for some intervals, and nothing can without a notification, it
/// rests: it polls after several intervals, or when what is on record is due.
///
/// If limit or timeout are ranges, each reply to a claim updates the estimate of how fast tokens arrive, and
/// choose_batch() chooses both from it. After a claim that may have left a backlog the limit is the upper
/// one.
class Batcher {
 public:
  /// What the choice of limit and timeout needs besides their upper ends.
  struct Adaptive {
    int min_limit = 0;
    Milliseconds min_timeout{};
    Milliseconds line_cost{};  ///< see BatchBounds
  };

  struct Options {
    Milliseconds batch_timeout{};  ///< of a range: the upper end
    Milliseconds poll_interval{};
    int line_limit = 0;                  ///< due tokens per line; of a range: the upper end
    int lines_per_claim = 1;             ///< full lines that one claim may take; 1 if the limit is a range
    std::optional<Adaptive> adaptive{};  ///< nullopt if limit and timeout are fixed
  };

  explicit Batcher(const Options& options) { configure(options); }

  struct Decision {
    bool poll = false;      ///< claim now
    bool partial = false;   ///< … even less than a full line
    bool routine = false;   ///< … only because the poll interval has ended
    int limit = 0;          ///< … at most this many tokens
    bool draining = false;  ///< … everything, whether or not a line is full
    bool full = false;      ///< … since a line as short as the load asks for is full
    TimePoint until{};      ///< otherwise wait until then, or until a notification
    TimePoint from{};       ///< earliest arrival of tokens that the previous poll did not find
  };

  void configure(const Options& options);
  /// A new session: all waiting tokens are emitted at once.
  void connected();
  void notified() { poll_ = true; }
  /// `polling`: inserts do not notify, so a token may have arrived at any time since the last poll.
  Decision decide(TimePoint now, bool polling = false) const;
  /// Records the reply to the claim that `decision` asked for, and when it started and finished.
  void claimed(const Decision& decision, const claim::ClaimReply& reply, TimePoint started,
               TimePoint finished);

 private:
  BatchBounds bounds() const;
  /// A batch is full before a line is.
  bool is_full_early() const { return choice_.limit < options_.line_limit; }
  int limit(bool partial) const;
  int full_lines(const claim::ClaimReply& reply) const;
  /// How long after a claim that finished at `finished` the next one follows at the latest.
  std::chrono::nanoseconds pause(const Decision& decision, const claim::ClaimReply& reply,
                                 TimePoint finished);
  void estimate(const claim::ClaimReply& reply, TimePoint started);

  Options options_;
  BatchChoice choice_;
  ArrivalGap gap_;
  bool draining_ = false;
  bool poll_ = false;
  TimePoint not_before_{};             ///< an empty poll is followed by a pause of the same duration
  TimePoint next_batch_{};             ///< while polling: earliest poll that acknowledges a partial batch
  TimePoint waiting_from_{};           ///< arrival of the first waiting token
  std::optional<TimePoint> deadline_;  ///< when the waiting tokens must be emitted
  int full_lines_ = 0;                 ///< lines that the last claim saw and did not take
  bool may_be_behind_ = false;         ///< the last claim may have left a full line
  int arrived_ = 0;                    ///< tokens since the last estimate
  int known_ = 0;                      ///< how many of the waiting tokens an earlier claim has seen
  std::int64_t waiting_to_ = 0;        ///< id of the last waiting token, or a later id
  TimePoint next_poll_{};
  TimePoint last_poll_{};
  std::int64_t idle_last_ = 0;    ///< the last token that a claim has seen
  std::int64_t idle_newest_ = 0;  ///< the newest batch, if the last claim was idle
  TimePoint rests_from_{};        ///< when it may begin to rest
};

}  // namespace mailroom::consumer
