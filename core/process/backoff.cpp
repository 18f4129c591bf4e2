#include "process/backoff.hpp"

#include <algorithm>

namespace mailroom {

Milliseconds Backoff::next() {
  std::uniform_int_distribution<Milliseconds::rep> jitter(bound_.count() / 2, bound_.count());
  const Milliseconds delay{jitter(random_)};
  bound_ = std::min(bound_ * 2, longest);
  return delay;
}

}  // namespace mailroom
