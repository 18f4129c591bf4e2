// Keeps a courier to the number of connections and mails that a relay takes at once.
#pragma once

#include <algorithm>

#include "base/clock.hpp"

namespace mailroom {

/// How many connections a relay takes of us, or how many mails at once, learnt from those that it refused as
/// too many. One more is tried after 10 s, and twice as late after each refusal, at most after 5 minutes.
/// Pure: takes times.
class AtOnce {
 public:
  static constexpr std::chrono::seconds soonest{10};
  static constexpr std::chrono::seconds latest{300};

  explicit AtOnce(int most) : most_(most), limit_(most) {}

  /// How many may be now.
  int limit(TimePoint now) {
    for (; limit_ < most_ && now >= raise_at_; raise_at_ = now + raise_after_)
      ++limit_;
    if (limit_ == most_ && now >= raise_at_) raise_after_ = soonest;
    return limit_;
  }
  /// A connection was refused that was begun at `began`; `others` remain.
  void refused_connection(int others, TimePoint began, TimePoint now) {
    limit_ = std::clamp(others, 1, limit_);
    if (began >= lowered_at_) note_refusal(now);
  }
  /// A mail was refused that left at `left`; `others` are under way. Mails that left before the last refusal
  /// were under way with that one.
  void refused_mail(int others, TimePoint left, TimePoint now) {
    if (left < lowered_at_) return;
    limit_ = std::clamp(others, 1, limit_);
    note_refusal(now);
  }
  /// The relay was unavailable, so what it refused was no limit.
  void forget() { limit_ = most_; }

  bool is_lowered() const { return limit_ < most_; }
  TimePoint raise_at() const { return raise_at_; }

 private:
  void note_refusal(TimePoint now) {
    lowered_at_ = now;
    raise_at_ = now + raise_after_;
    raise_after_ = std::min(2 * raise_after_, latest);
  }

  int most_;
  int limit_;
  std::chrono::seconds raise_after_ = soonest;
  TimePoint raise_at_{};
  TimePoint lowered_at_{};
};

}  // namespace mailroom
