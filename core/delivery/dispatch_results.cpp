// A descriptor tells the sink, which waits for a stop request too.

#include <utility>

#include "delivery/dispatcher.hpp"

namespace mailroom {

void DispatchResults::conclude(std::int64_t batch, Dispatched dispatched) {
  done_.push_back(std::move(dispatched));
  const auto found = unfinished_.find(batch);
  if (--found->second > 0) return;
  unfinished_.erase(found);
  ready_.signal();
  if (unfinished_.empty()) finished_.notify_all();
}

std::vector<Dispatched> DispatchResults::take() {
  ready_.clear();
  return std::exchange(done_, {});
}

bool DispatchResults::wait(std::unique_lock<std::mutex>& lock, TimePoint until) {
  return finished_.wait_until(lock, until, [this] { return unfinished_.empty(); });
}

}  // namespace mailroom
