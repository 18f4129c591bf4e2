#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/clock.hpp"
#include "base/stop_signal.hpp"

namespace mailroom {

class Connection;
class Log;

/// What a collector waits for.
enum class Awaited { nothing, reader, database };

/// Stands by a collector that is asked to stop while it waits, and so cannot see to that itself: says what it
/// waits for, and has a statement cancelled that takes longer than a moment, as one does that waits for
/// somebody else's lock. Does nothing until then.
class StopWatcher {
 public:
  static constexpr Milliseconds moment{200};

  /// Both outlive this.
  StopWatcher(const StopSignal& signal, Log& log);
  ~StopWatcher();
  StopWatcher(const StopWatcher&) = delete;
  StopWatcher& operator=(const StopWatcher&) = delete;

  /// From here to its end the collector's thread waits for something. The last one that began counts.
  class Wait {
   public:
    /// `running`, if it is not null, runs a statement that may be cancelled after `patience`. Without a
    /// watcher nobody looks.
    Wait(StopWatcher* watcher, Awaited awaited, Connection* running = nullptr,
         Milliseconds patience = moment);
    /// Returns once a cancellation that is under way has reached the server, so that it hits nothing else.
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

    bool cancelled() const;

   private:
    friend class StopWatcher;

    StopWatcher* watcher_;
    Awaited awaited_;
    Connection* running_;
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
  std::mutex mutex_;
  std::condition_variable ending_;
  bool ended_ = false;
  int end_ = -1;  ///< an eventfd, readable when this ends
  Wait* wait_ = nullptr;
  TimePoint asked_at_;
  Awaited told_ = Awaited::nothing;
  std::thread thread_;
};

}  // namespace mailroom
