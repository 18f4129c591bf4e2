// How many requests are answered in a second.
#pragma once

#include "base/clock.hpp"

namespace mailroom::webhook {

/// Counts requests of any client. For one thread at a time.
class SecondLimit {
 public:
  explicit SecondLimit(int most) : most_(most) {}

  /// Counts one more; true if it is too many for this second.
  bool is_exceeded(TimePoint now) {
    if (now - began_ >= std::chrono::seconds(1)) {
      began_ = now;
      count_ = 0;
    }
    return ++count_ > most_;
  }

 private:
  int most_;
  int count_ = 0;
  TimePoint began_{};
};

}  // namespace mailroom::webhook
