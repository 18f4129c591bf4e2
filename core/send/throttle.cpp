#include "send/throttle.hpp"

#include <algorithm>

namespace mailroom {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr double cut = 0.5;
constexpr double step = 1.25;
constexpr double lowest = 0.1;  ///< mails per second
constexpr Seconds shortest{0.001};

}  // namespace

void Throttle::delivered(int mails, TimePoint began, TimePoint ended, bool throttled) {
  if (mails == 0) return;
  if (throttled) {
    const double rate = mails / std::max<Seconds>(ended - began, shortest).count();
    if (!limit_) full_ = rate;
    limit_ = std::max(lowest, limit_.value_or(rate) * cut);
    raised_at_ = ended;
  } else if (limit_ && ended - raised_at_ >= raised_every) {
    limit_ = *limit_ * step;
    raised_at_ = ended;
    if (*limit_ >= full_) limit_.reset();
  }
  next_ = limit_ ? began + std::chrono::duration_cast<TimePoint::duration>(Seconds(mails / *limit_))
                 : TimePoint{};
}

}  // namespace mailroom
