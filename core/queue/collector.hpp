#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/output.hpp"
#include "base/retry_log.hpp"
#include "db/errors.hpp"
#include "queue/backoff.hpp"
#include "queue/batch_writer.hpp"
#include "queue/batcher.hpp"
#include "queue/queue_session.hpp"
#include "queue/surroundings.hpp"
#include "queue/waker.hpp"

namespace mailroom {

/// A setting that has another value than before, as an operator is told of it.
struct SettingChange {
  std::string name;
  std::string before;
  std::string after;
  bool takes_effect = true;  ///< at once, not at the next start
};

/// What a collector works with; SIGHUP brings a new one.
struct CollectorSetup {
  SessionFactory connect;
  std::string session_identity;  ///< changes when `connect` leads elsewhere; never shown
  Key key;
  std::function<std::unique_ptr<Encoder>()> make_encoder;
  int batch_limit = 0;  ///< tokens a line
  int lines_per_claim = 1;
  Batcher::Options batcher;
  bool notify_always = false;  ///< inserts notify, however fast they come
  Milliseconds healthcheck_interval{};
  std::vector<SettingChange> changes{};  ///< since the last one
};

struct CollectorLimits {
  bool once = false;                          ///< stop when the queue is drained
  std::optional<std::int64_t> max_batches{};  ///< stop after so many lines
  Milliseconds wait_for_database{};           ///< how long to try at the start; 0: once
};

/// The loop: claim, fetch, sign, write, acknowledge with the next claim. A batch is acknowledged only after
/// its line is written, so that a crash repeats at most the batch in flight (which has several lines where a
/// claim may take them). The receipt outlives the session: after a reconnect the batch is acknowledged all
/// the same, and nothing is repeated, when no other collector was connected or the sessions of all ended (a
/// restart of the server: they wait for each other). One that stayed connected takes over at once what a
/// session that ended had not acknowledged, and repeats it if it was written: one batch for each session that
/// ended.
class Collector {
 public:
  using Reload = std::function<CollectorSetup()>;

  Collector(CollectorSetup setup, CollectorLimits limits, Reload reload, Surroundings& surroundings,
            Output& output, Log& log);

  /// Returns when it was told to stop, or a limit is reached, with every written batch acknowledged. Throws
  /// ConnectionLost when the database cannot be reached at the start, Error(output_closed) when the output
  /// takes no more, Error(locked) when somebody keeps it from acknowledging, DatabaseError for what trying
  /// again does not mend.
  void run();

 private:
  struct Totals {
    std::int64_t batches = 0;
    std::int64_t tokens = 0;
    std::int64_t skipped = 0;
  };

  void connect_first();
  void reconnect();
  /// Gets ready to try again, or to leave when that is of no use: false then.
  bool mends(const DatabaseError& error);
  void adopt_session(std::unique_ptr<QueueSession> session);
  void step();
  void look(const Batcher::Decision& decision);
  void wait_until(TimePoint until);
  void collect();
  Batcher::Options batcher_options() const;
  Wakefulness::Options wakefulness_options() const;
  ClaimReply claim(const ClaimRequest& request);
  void report(const ClaimReply& reply);
  void hand_on(const Lease& lease);
  void acknowledge_last();
  /// Without the queue's lock, which somebody may keep for long. Throws Error(locked) when that cannot be.
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
  Surroundings& surroundings_;
  Output& output_;
  Log& log_;

  Batcher batcher_;
  Waker waker_;
  BatchWriter writer_;
  Backoff backoff_;
  RetryLog retries_;
  std::unique_ptr<QueueSession> session_;
  std::optional<Receipt> receipt_;  ///< of the batch that is written and not yet acknowledged
  TimePoint take_over_from_{};  ///< no orphans before: after a restart their collectors may yet acknowledge
  TimePoint last_round_trip_{};
  TimePoint last_published_{};
  std::int64_t batches_written_ = 0;
  bool drained_ = false;
  Totals since_idle_;
};

}  // namespace mailroom
