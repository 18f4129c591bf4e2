// The loop of collect and send: claim, sign, deliver, acknowledge, whatever session is lost meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "consumer/claimer.hpp"
#include "consumer/consumer_observer.hpp"
#include "consumer/pipeline.hpp"
#include "consumer/receipts.hpp"
#include "consumer/session_keeper.hpp"
#include "consumer/waker.hpp"
#include "process/environment.hpp"

namespace mailroom::consumer {

/// A setting whose value has changed, as reported to the operator.
struct SettingChange {
  std::string name;
  std::string before;
  std::string after;
  bool takes_effect = true;  ///< at once; false: after a restart
  /// Of what a setting names, a file or a directory, whose content is not shown: `changed`, `2 changed`.
  std::string content{};

  /// `send.from`, `templates: 2 changed`
  std::string text() const { return content.empty() ? name : name + ": " + content; }
};

/// The configuration of a collector; SIGHUP replaces it.
struct CollectorSetup {
  claim::SessionFactory connect;
  std::string session_identity;  ///< changes when `connect` has another target; never shown
  crypto::Key key;
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

/// The main loop. SessionKeeper keeps its session, Claimer decides on the next claim, Pipeline takes claimed
/// batches through the sink, and Receipts acknowledges them.
class Collector {
 public:
  using Reload = std::function<CollectorSetup()>;

  /// `environment`, `log` and `observer` must outlive this.
  Collector(CollectorSetup setup, CollectorLimits limits, Reload reload, process::Environment& environment,
            Log& log, ConsumerObserver& observer = nobody());

  /// Returns after a stop request or when a limit is reached, with every written batch acknowledged. Throws
  /// ConnectionLost when the database cannot be reached at the start, Error(output_closed) when the reader of
  /// the output has gone, Error(locked) when a lock prevents the last acknowledgement, DatabaseError when a
  /// retry does not help.
  void run();

 private:
  void collect();
  void step();
  bool is_finished() const;
  /// True if it claims again after the batch that is claimed now.
  bool claims_on() const;
  /// Acknowledges a batch that would otherwise wait long for the next claim, or else waits.
  void wait_until(TimePoint until);
  /// With --once: throws Error(database) if the sink is unavailable, so that tokens stay in the queue.
  void require_available(TimePoint now) const;
  /// What is open, and its receipts; then what became of tokens for which no batch has waited.
  void finish_and_acknowledge();
  void leave_sinks();
  void acknowledge_before_leaving();
  void reload();
  /// Makes `setup` the configuration.
  void apply(CollectorSetup setup);
  void leave_session();
  /// Once there is a session.
  void record_reloads();

  CollectorSetup setup_;
  CollectorLimits limits_;
  Reload reload_;
  process::Environment& environment_;
  Log& log_;
  ConsumerObserver& observer_;
  SessionKeeper sessions_;
  Waker waker_;
  Receipts receipts_;
  Pipeline pipeline_;
  Claimer claimer_;
  bool is_drained_ = false;
  std::vector<std::string> unrecorded_{};  ///< details of reloads
  bool is_reloading_ = false;              ///< as soon as no claim is left that has been made
};

}  // namespace mailroom::consumer
