// Hands events from the threads that received them to the one that has the database.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "base/threads.hpp"
#include "suppression/bounce_records.hpp"

namespace mailroom {

/// What became of an event.
enum class EventReceipt {
  pending,
  recorded,
  not_yet,  ///< its mail is not on record, and may be soon
  failed    ///< it is not recorded
};

/// An event on its way to the database.
struct Handover {
  Report report;
  EventReceipt receipt = EventReceipt::pending;
};

/// Events that wait to be recorded. For several threads.
class EventIntake {
 public:
  static constexpr std::size_t most_waiting = 64;

  /// Waits until the event is recorded, `patience` at most. Never pending.
  EventReceipt submit(Report report, std::chrono::milliseconds patience);
  /// The events that wait, without waiting for one. Each is to be settled.
  std::vector<std::shared_ptr<Handover>> take();
  void settle(Handover& handover, EventReceipt receipt);
  /// Fails what waits and what comes.
  void close();
  /// Readable while events wait.
  int fd() const { return news_.fd(); }

 private:
  std::mutex mutex_;
  std::condition_variable settled_;
  std::deque<std::shared_ptr<Handover>> waiting_;
  EventFd news_;
  bool is_closed_ = false;
};

}  // namespace mailroom
