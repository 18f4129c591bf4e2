// Lets a stop request reach a thread that waits for its reader, for the database, or for a connection to it.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/clock.hpp"
#include "db/connection.hpp"
#include "process/stop_signal.hpp"

namespace mailroom::db {
class Connection;
}

namespace mailroom {
class Log;
}

namespace mailroom::process {

/// Connects as Connection() does. Throws ConnectionLost when a stop is requested meanwhile: nothing
/// interrupts libpq, so a thread is left to it, for which the process does not wait at its end. After a stop
/// request this is Connection(): what is left to do may need a session.
std::unique_ptr<db::Connection> connect_until_stopped(const StopSignal& signal,
                                                      const db::DatabaseTarget& target,
                                                      const std::string& purpose);

/// What the collector's thread waits for.
enum class Awaited { nothing, reader, database };

/// A thread that handles a stop request while the collector's thread waits: logs what the collector waits
/// for, and cancels a statement that takes longer than a moment, such as one that waits for a lock. Idle
/// until a stop is requested.
class StopWatcher {
 public:
  static constexpr Milliseconds moment{200};

  /// `reader`: what Awaited::reader stands for. `signal` and `log` must outlive this.
  StopWatcher(const StopSignal& signal, Log& log, std::string reader = "the reader of stdout");
  ~StopWatcher();
  StopWatcher(const StopWatcher&) = delete;
  StopWatcher& operator=(const StopWatcher&) = delete;

  /// Replaces what Awaited::reader stands for.
  void name_reader(std::string reader);

  const StopSignal& signal() const { return signal_; }

  /// What the collector's thread waits for now; for any thread to ask.
  Awaited awaited() const;

  /// While it exists, the collector's thread waits for something. The innermost Wait counts.
  class Wait {
   public:
    /// `running`, if not null, runs a statement that may be cancelled after `patience`. Without a `watcher`
    /// this does nothing.
    Wait(StopWatcher* watcher, Awaited awaited, db::Connection* running = nullptr,
         Milliseconds patience = moment);
    /// Waits until a cancellation in progress has reached the server, so that it cannot hit a later
    /// statement.
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

    bool cancelled() const;

   private:
    friend class StopWatcher;

    StopWatcher* watcher_;
    Awaited awaited_;
    db::Connection* running_;
    Milliseconds patience_;
    TimePoint since_;
    bool cancelled_ = false;
    Wait* outer_ = nullptr;
  };

 private:
  void watch();
  void attend();

  const StopSignal& signal_;
  Log& log_;
  std::string reader_;
  mutable std::mutex mutex_;
  int end_ = -1;  ///< an eventfd, readable when this ends
  Wait* wait_ = nullptr;
  TimePoint asked_at_;
  Awaited told_ = Awaited::nothing;
  std::thread thread_;
};

}  // namespace mailroom::process
