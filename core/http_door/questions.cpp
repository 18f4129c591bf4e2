// A session opens when the first question comes, and again after a loss.

#include "http_door/questions.hpp"

#include <utility>

#include "base/threads.hpp"

namespace mailroom::http_door {

Questions::Questions(const submission::DatabaseAccess& access, std::size_t threads) : access_(access) {
  const BlockedSignals blocked;
  for (std::size_t i = 0; i < threads; ++i)
    threads_.emplace_back([this] { work(); });
}

Questions::~Questions() {
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  arrived_.notify_all();
  for (auto& thread : threads_)
    thread.join();
}

bool Questions::ask(Question question) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= most_waiting) return false;
    waiting_.push_back(std::move(question));
  }
  arrived_.notify_one();
  return true;
}

void Questions::work() {
  KeyedSession session(access_);
  std::unique_lock lock(mutex_);
  for (;;) {
    arrived_.wait(lock, [this] { return has_ended_ || !waiting_.empty(); });
    if (has_ended_) return;
    const auto question = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    question(session);
    lock.lock();
  }
}

}  // namespace mailroom::http_door
