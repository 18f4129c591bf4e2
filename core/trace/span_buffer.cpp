// Wakes the other thread once for many spans: to wake it for each would cost more than the span.

#include "trace/span_buffer.hpp"

#include <iterator>
#include <utility>

namespace mailroom::trace {

void SpanBuffer::add(Span span) {
  bool is_enough = false;
  {
    const std::lock_guard lock(mutex_);
    if (spans_.size() >= capacity_) {
      ++dropped_;
      return;
    }
    spans_.push_back(std::move(span));
    is_enough = spans_.size() == enough_;
  }
  if (is_enough) news_.notify_all();
}

void SpanBuffer::wait(std::size_t enough, TimePoint until, const std::function<bool()>& is_over) {
  std::unique_lock lock(mutex_);
  enough_ = enough;
  news_.wait_until(lock, until, [&] { return spans_.size() >= enough || is_over(); });
  enough_ = 0;
}

void SpanBuffer::wake() {
  // Whoever has looked at `is_over` waits by now.
  { const std::lock_guard lock(mutex_); }
  news_.notify_all();
}

void SpanBuffer::take(std::size_t most, std::vector<Span>& taken) {
  taken.clear();
  const std::lock_guard lock(mutex_);
  if (spans_.size() <= most) return std::swap(spans_, taken);
  const auto end = spans_.begin() + static_cast<std::ptrdiff_t>(most);
  taken.assign(std::make_move_iterator(spans_.begin()), std::make_move_iterator(end));
  spans_.erase(spans_.begin(), end);
}

}  // namespace mailroom::trace
