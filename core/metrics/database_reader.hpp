// Gives the metrics a recent reading of the database, and keeps the consumer's loop out of it.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "metrics/database_metrics.hpp"

namespace mailroom::metrics {

/// Reads the database when it is asked to, on a thread and a session of its own, and keeps what it has read
/// for a while. It never disturbs the consumer's session, and connects only when somebody asks.
class DatabaseReader {
 public:
  static constexpr Milliseconds kept_for{5000};
  static constexpr Milliseconds statement_timeout{2000};
  static constexpr std::chrono::seconds session_kept_for{60};  ///< while nobody asks

  struct Source {
    db::DatabaseTarget conninfo;
    std::vector<std::string> queues;
    health::HealthLimits limits;
  };

  /// `log` must outlive this.
  DatabaseReader(Source source, Log& log);
  /// Waits for the statement or the attempt to connect that is in progress: some seconds at most.
  ~DatabaseReader();
  DatabaseReader(const DatabaseReader&) = delete;
  DatabaseReader& operator=(const DatabaseReader&) = delete;

  /// Takes effect with the next reading.
  void configure(Source source);
  /// What was read within `kept_for`. If it has to be read first, waits at most `patience` for it, and is
  /// null then.
  std::shared_ptr<const DatabaseReading> latest(Milliseconds patience);

 private:
  void work();
  /// Reads with the session that is open, and if that has ended, with a new one.
  DatabaseReading read(const Source& source);
  void open(const Source& source);
  void note(const DatabaseReading& reading);
  bool is_fresh() const { return latest_ && steady_now() - read_at_ < kept_for; }

  Log& log_;
  std::mutex mutex_;
  std::condition_variable asked_;
  std::condition_variable answered_;
  Source source_;
  bool is_asked_ = false;
  bool ended_ = false;
  std::shared_ptr<const DatabaseReading> latest_;
  TimePoint read_at_{};
  // The rest is for the thread alone.
  std::unique_ptr<db::Connection> connection_;
  db::DatabaseTarget connected_to_;
  bool was_up_ = true;
  std::thread thread_;
};

}  // namespace mailroom::metrics
