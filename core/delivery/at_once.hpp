// Keeps a sink to the number of connections and mails that a relay takes at once.
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

  /// How many may be now; 0 while the relay takes not even one.
  int limit(TimePoint now) {
    if (now < opens_at_) return 0;
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
  /// The only connection was refused: others have all that the relay allows. One more is tried after 1 s, and
  /// twice as late after each refusal, at most after 30 s. False from the refusal on that follows the longest
  /// wait: the relay takes none of us.
  bool refused_all(TimePoint now) {
    constexpr int last = 6;
    opens_at_ =
        now + std::min(std::chrono::seconds(1 << std::min(refused_all_, last)), std::chrono::seconds(30));
    return ++refused_all_ <= last;
  }
  /// The relay has answered a mail.
  void answered() { refused_all_ = 0; }
  /// The relay was unavailable, so what it refused was no limit.
  void forget() { limit_ = most_; }

  bool is_lowered() const { return limit_ < most_; }
  TimePoint raise_at() const { return std::max(raise_at_, opens_at_); }
  /// When the relay may take a connection again; a time in the past means now.
  TimePoint opens_at() const { return opens_at_; }

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
  int refused_all_ = 0;  ///< times in a row
  TimePoint opens_at_{};
};

}  // namespace mailroom
