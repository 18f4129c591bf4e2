// Where finished spans wait for the thread that sends them: bounded, so that a collector of traces that is
// down costs nothing.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "base/clock.hpp"
#include "trace/span.hpp"

namespace mailroom::trace {

/// What became of spans since the start.
struct SpanCounts {
  std::uint64_t sent = 0;
  std::uint64_t dropped = 0;  ///< the buffer was full, or the collector of traces did not take them in time
  std::uint64_t refused = 0;  ///< by the collector of traces, for good
};

/// add() and counts() are for any thread, and neither waits for the receiver; the rest is for the thread
/// that sends.
class SpanBuffer {
 public:
  static constexpr std::size_t default_capacity = 16'384;

  explicit SpanBuffer(std::size_t capacity = default_capacity) : capacity_(capacity) {}

  /// Drops the span if the buffer is full.
  void add(Span span);
  /// Returns when there are `enough`, at `until`, or when `is_over` is true: see wake().
  void wait(std::size_t enough, TimePoint until, const std::function<bool()>& is_over);
  /// Lets wait() look at `is_over` again.
  void wake();
  /// Puts the oldest spans, at most `most`, in the place of those in `taken`, whose memory it uses again.
  void take(std::size_t most, std::vector<Span>& taken);

  void note_sent(std::size_t spans) { sent_ += spans; }
  void note_dropped(std::size_t spans) { dropped_ += spans; }
  void note_refused(std::size_t spans) { refused_ += spans; }
  SpanCounts counts() const { return {sent_, dropped_, refused_}; }

 private:
  std::size_t capacity_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::vector<Span> spans_;
  std::size_t enough_ = 0;  ///< of which wait() wants to know
  std::atomic<std::uint64_t> sent_ = 0;
  std::atomic<std::uint64_t> dropped_ = 0;
  std::atomic<std::uint64_t> refused_ = 0;
};

}  // namespace mailroom::trace
