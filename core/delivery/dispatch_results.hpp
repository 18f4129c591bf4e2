// The answers of a dispatcher until its sink takes them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "base/threads.hpp"
#include "delivery/answer.hpp"

namespace mailroom {

/// What became of a message.
struct Dispatched {
  Answer answer;
  bool is_final = true;       ///< false: a limit has refused the message, which is tried again
  bool may_be_taken = false;  ///< an earlier try, in the time that it is sent again, was not answered
  TimePoint at{};             ///< when it got its answer
};

/// Keeps answers, and wakes the sink once for a batch: to wake a thread costs as much as a tenth of a
/// delivery. The dispatcher's mutex guards it.
class DispatchResults {
 public:
  /// A message of the batch is on its way.
  void expect(std::int64_t batch) { ++unfinished_[batch]; }
  /// An answer that is not final.
  void note(Dispatched dispatched) { done_.push_back(std::move(dispatched)); }
  /// The final answer to a message of the batch.
  void conclude(std::int64_t batch, Dispatched dispatched);

  /// Readable when every message of a batch has its final answer; take() ends that.
  int fd() const { return ready_.fd(); }
  std::vector<Dispatched> take();
  /// Waits until every message has its final answer; false if it is `until` before.
  bool wait(std::unique_lock<std::mutex>& lock, TimePoint until);

 private:
  EventFd ready_;
  std::vector<Dispatched> done_;
  std::map<std::int64_t, std::size_t> unfinished_;  ///< how many messages of each batch have no final answer
  std::condition_variable finished_;
};

}  // namespace mailroom
