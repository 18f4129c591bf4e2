#include "queue/wakefulness.hpp"

#include <algorithm>

namespace mailroom {
namespace {

using namespace std::chrono_literals;

// Below some hundred tokens a second a notification each costs producers nothing, and looking often would
// cost more than it saves.
constexpr std::int64_t fast_tokens = 500;  ///< a second, to stay awake
constexpr std::int64_t slow_tokens = 250;  ///< a second, to fall asleep
constexpr auto measure_time = 20ms;
constexpr auto longest_measure = 1s;  ///< seconds of silence before a burst do not count
constexpr auto shortest_pause = 500us;
constexpr auto longest_pause = 5ms;

}  // namespace

Wakefulness::Advice Wakefulness::looked(const Sight& sight, TimePoint now) {
  const bool measured = measure(sight.last, now);
  const bool wanted = busy_ && options_.allowed;
  if (state_ == State::awake && !wanted) return Advice::fall_asleep;
  if (state_ == State::awake) next_look_ = now + pause(sight.waiting);
  if (state_ == State::settling) {
    // As long again as they have been open already, however often a notification made it look meanwhile.
    next_look_ = now + std::clamp<std::chrono::nanoseconds>(
                           now - settling_from_, 1ms, std::max<Milliseconds>(options_.poll_interval, 1ms));
  }
  // Once a measurement: where another collector is awake already, each attempt is a round trip for nothing.
  return state_ != State::awake && wanted && measured ? Advice::stay_awake : Advice::none;
}

void Wakefulness::stays_awake(TimePoint now) {
  state_ = State::awake;
  next_look_ = now + pause(false);
}

void Wakefulness::settle(TimePoint now) {
  state_ = State::settling;
  next_look_ = now;
  settling_from_ = now;
}

bool Wakefulness::measure(std::int64_t last, TimePoint now) {
  const auto passed = now - measured_from_;
  if (passed < measure_time || last == 0) return false;
  const auto enough =
      (busy_ ? slow_tokens : fast_tokens) * std::chrono::duration_cast<Milliseconds>(passed).count() / 1000;
  busy_ = passed < longest_measure && last - last_at_measure_ >= enough;
  last_at_measure_ = last;
  measured_from_ = now;
  return true;
}

std::chrono::nanoseconds Wakefulness::pause(bool waiting) const {
  // Until the timeout of those that wait a look is for nothing, unless enough come to fill their batch.
  const std::chrono::nanoseconds timeout = options_.batch_timeout;
  return std::clamp<std::chrono::nanoseconds>(waiting ? timeout : timeout / 2, shortest_pause, longest_pause);
}

}  // namespace mailroom
