// A clearance asks with its own lock held, so the list answers none of them under its lock.

#include "delivery/clearance.hpp"

namespace mailroom::delivery {

void Clearance::ask_locked() {
  if (state_ != State::unasked) return;
  state_ = State::asked;
  if (permits_ == nullptr) {
    bell_->signal();
  } else if (!permits_->add(shared_from_this())) {
    state_ = State::refused;
  }
}

bool Permits::add(std::shared_ptr<Clearance> clearance) {
  {
    const std::lock_guard lock(mutex_);
    if (is_refusing_) return false;
    asked_.push_back(std::move(clearance));
  }
  bell_->signal();
  return true;
}

std::vector<std::shared_ptr<Clearance>> Permits::asked() {
  const std::lock_guard lock(mutex_);
  std::erase_if(asked_, [](const auto& each) { return !each->is_asked(); });
  return asked_;
}

void Permits::refuse_all(bool on) {
  std::vector<std::shared_ptr<Clearance>> waiting;
  {
    const std::lock_guard lock(mutex_);
    is_refusing_ = on;
    if (on) waiting.swap(asked_);
  }
  for (const auto& each : waiting)
    each->refuse();
}

}  // namespace mailroom::delivery
