// The loop of collect and send: lease, sign, deliver, acknowledge, whatever session is lost meanwhile.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "consumer/batch_signer.hpp"
#include "consumer/consumer_observer.hpp"
#include "consumer/queue_session.hpp"
#include "consumer/queue_turns.hpp"
#include "consumer/sink.hpp"
#include "consumer/waker.hpp"
#include "db/errors.hpp"
#include "process/backoff.hpp"
#include "process/environment.hpp"
#include "process/retry_log.hpp"

namespace mailroom {

/// A setting whose value has changed, as reported to the operator.
struct SettingChange {
  std::string name;
  std::string before;
  std::string after;
  bool takes_effect = true;  ///< at once; false: after a restart
};

/// The configuration of a collector; SIGHUP replaces it.
struct CollectorSetup {
  SessionFactory connect;
  std::string session_identity;  ///< changes when `connect` has another target; never shown
  Key key;
  std::function<std::unique_ptr<Sink>()> make_sink;
  std::vector<std::string> queues;  ///< those that it serves
  QueueTurns::Options turns;
  bool notify_always = false;  ///< inserts notify at any rate; the collector never polls instead
  Milliseconds healthcheck_interval{};
  /// The tokens that wait in its queues; nullopt if that is not known.
  std::function<std::optional<std::int64_t>()> count_waiting{};
  std::vector<SettingChange> changes{};  ///< since the previous setup
};

struct CollectorLimits {
  bool once = false;                          ///< stop when its queues are drained
  std::optional<std::int64_t> max_batches{};  ///< stop after this many batches
  Milliseconds wait_for_database{};           ///< how long to retry at the start; 0: try once
};

/// The main loop: claim, fetch, sign, give to the sink, acknowledge with the next claim. A batch is
/// acknowledged only after the sink has finished it, so a crash repeats at most the batches that are open at
/// the sink or wait for the claim, which are at most Sink::most_open() together. A session may claim a batch
/// ahead, while the one before is read: it is neither written nor signed before that one is written. The
/// receipt outlives the session: after a reconnect the collector still acknowledges the batch, and nothing is
/// repeated, if no other collector was connected or all sessions ended (a server restart: the collectors wait
/// for each other). A collector that stayed connected takes over the unacknowledged batch of an ended session
/// at once, and repeats it if it was written: at most one batch per ended session.
class Collector {
 public:
  using Reload = std::function<CollectorSetup()>;

  /// `environment`, `log` and `observer` must outlive this.
  Collector(CollectorSetup setup, CollectorLimits limits, Reload reload, Environment& environment, Log& log,
            ConsumerObserver& observer);
  /// Nobody observes it.
  Collector(CollectorSetup setup, CollectorLimits limits, Reload reload, Environment& environment, Log& log);

  /// Returns after a stop request or when a limit is reached, with every written batch acknowledged. Throws
  /// ConnectionLost when the database cannot be reached at the start, Error(output_closed) when the reader of
  /// the output has gone, Error(locked) when a lock prevents the last acknowledgement, DatabaseError when a
  /// retry does not help.
  void run();

 private:
  /// A batch at the sink.
  struct OpenBatch {
    GivenBatch given;
    int size = 0;
    BatchTrigger trigger = BatchTrigger::full;
  };
  /// A claim, and what was known before it.
  struct Claim {
    QueueTurns::Turn turn;
    ClaimRequest request;
    TimePoint started;
    bool was_last_poll = false;
    bool was_paused = false;
    ClaimReply reply{};
    std::chrono::nanoseconds took{};
  };
  struct Totals {
    std::int64_t batches = 0;
    std::int64_t tokens = 0;
    std::int64_t skipped = 0;
  };

  void connect_first();
  void reconnect();
  /// Prepares a retry; returns false, after acknowledging, if a retry does not help.
  bool fixes(const DatabaseError& error);
  void adopt_session(std::unique_ptr<QueueSession> session);
  void drop_session();
  void step();
  void poll(const QueueTurns::Turn& turn);
  /// Claims nothing until then: the sink is unavailable.
  void hold(TimePoint until);
  /// Throws Error(database): tokens wait, and the sink is unavailable.
  [[noreturn]] void leave_tokens() const;
  /// Acknowledges a batch that would otherwise wait long for the next claim, or else waits.
  void wait_until(TimePoint until);
  void acknowledge(Receipt receipt);
  void note_pauses(const QueueTurns::Turn& turn, bool was_paused);
  void collect();
  PollingState::Options polling_state_options() const;
  /// A claim for `turn` that starts now.
  Claim prepare_claim(const QueueTurns::Turn& turn);
  /// Does what follows from its reply.
  void settle(const Claim& claim);
  ClaimReply claim(const ClaimRequest& request);
  void note_claim(const ClaimRequest& request, const ClaimReply& reply, std::chrono::nanoseconds took);
  void report(const ClaimReply& reply);
  /// Gives the batch to the sink. Another may stay open there.
  void give(const Claim& claim);
  /// Begins the next claim, if it can be made while this batch is read.
  std::optional<Claim> begin_ahead(const Claim& claim);
  void end_ahead(Claim& next);
  /// Waits for the claim that was begun, whose batch is taken over later.
  void forget_ahead();
  /// How many batches may stay open while the next is claimed, after this reply.
  std::size_t may_stay_open(const ClaimReply& reply) const;
  void finish_oldest();
  void finish_open();
  /// The batch at the sink that belongs to the queue.
  std::optional<std::int64_t> held_batch(const std::string& queue) const;
  void acknowledge_last();
  /// Does not wait for the queue's lock. Throws Error(locked) when the acknowledgement fails.
  void acknowledge_without_lock();
  void acknowledge_before_leaving();
  void reload();
  void report_changes();
  void leave_session();
  void log_totals();
  bool finished() const;

  CollectorSetup setup_;
  CollectorLimits limits_;
  Reload reload_;
  Environment& environment_;
  Log& log_;
  ConsumerObserver& observer_;

  QueueTurns turns_;
  Waker waker_;
  BatchSigner signer_;
  std::unique_ptr<Sink> sink_;
  Backoff backoff_;
  RetryLog retries_;
  std::unique_ptr<QueueSession> session_;
  std::deque<OpenBatch> open_;    ///< at the sink, the oldest first
  std::deque<Receipt> receipts_;  ///< of batches that are finished and not yet acknowledged
  TimePoint take_over_from_{};    ///< no take-over before: collectors may still reconnect and acknowledge
  bool is_new_session_ = false;   ///< the sink has not been consulted with it
  TimePoint next_wake_{};         ///< while polling: when to notify the collectors of other queues
  TimePoint last_round_trip_{};
  TimePoint last_published_{};
  std::map<std::string, std::int64_t> passed_;  ///< the highest cursor of each queue that claims have shown
  std::int64_t batches_written_ = 0;
  bool drained_ = false;
  std::optional<Claim> ahead_;   ///< made while the batch before was read, and not settled
  bool is_reader_fast_ = false;  ///< the last batch was written in less time than it was read
  bool is_reloading_ = false;    ///< as soon as nothing is claimed ahead
  Totals since_idle_;
};

}  // namespace mailroom
