// Hands events from thread to thread. One transaction takes what has come meanwhile, so that many events need
// few of them.

#include <algorithm>

#include "webhook/event_webhook.hpp"

namespace mailroom::webhook {

std::optional<std::vector<suppression::TopicChoice>> EventIntake::change(suppression::PreferenceChange change,
                                                                         std::chrono::milliseconds patience) {
  const auto handover = std::make_shared<Handover>(Handover{.change = std::move(change)});
  if (hand_over(handover, patience) != EventReceipt::recorded) return std::nullopt;
  return std::move(handover->choices);
}

EventReceipt EventIntake::hand_over(const std::shared_ptr<Handover>& handover,
                                    std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  if (is_closed_ || waiting_.size() >= most_waiting) return EventReceipt::failed;
  waiting_.push_back(handover);
  news_.signal();
  settled_.wait_for(lock, patience, [&] { return handover->receipt != EventReceipt::pending || is_closed_; });
  if (handover->receipt != EventReceipt::pending) return handover->receipt;
  // It may be recorded yet; then it is known when it comes again.
  std::erase(waiting_, handover);
  return EventReceipt::failed;
}

std::vector<std::shared_ptr<Handover>> EventIntake::take() {
  const std::lock_guard lock(mutex_);
  news_.clear();
  std::vector<std::shared_ptr<Handover>> taken(waiting_.begin(), waiting_.end());
  waiting_.clear();
  return taken;
}

void EventIntake::settle(Handover& handover, EventReceipt receipt) {
  const std::lock_guard lock(mutex_);
  handover.receipt = receipt;
  settled_.notify_all();
}

void EventIntake::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  settled_.notify_all();
}

}  // namespace mailroom::webhook
