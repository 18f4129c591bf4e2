// Takes care of statements that fail and may have taken effect: then this collector listens again.

#include "consumer/waker.hpp"

#include <algorithm>

#include "db/errors.hpp"

namespace mailroom::consumer {
namespace {

using namespace std::chrono_literals;

// Below some hundred tokens per second notifications cost producers nothing, and polling would cost more than
// it saves.
constexpr std::int64_t fast_tokens = 500;  ///< per second; at this rate polling starts
constexpr std::int64_t slow_tokens = 250;  ///< per second; below this rate listening starts
constexpr auto measure_time = 20ms;
constexpr auto longest_measure = 1s;  ///< a longer measurement includes idle time and does not count
constexpr auto shortest_pause = 500us;
constexpr auto longest_pause = 5ms;

}  // namespace

void Waker::drain(claim::QueueSession& session) {
  if (!polling_state_.is_polling()) start_listening(session);
}

bool Waker::is_last_poll(claim::QueueSession& session) {
  return polling_state_.is_draining() && !session.arrange(claim::Waking::ask);
}

void Waker::polled(claim::QueueSession& session, const PollingState::Sight& sight, TimePoint started,
                   bool sink_is_ready) {
  const auto advice = polling_state_.polled(sight, started);
  if (advice == PollingState::Advice::stay_polling && sink_is_ready) stay_polling(session);
  if (advice == PollingState::Advice::start_listening) start_listening(session);
}

void Waker::hand_over(claim::QueueSession* session) {
  if (session == nullptr || polling_state_.is_listening()) return;
  try {
    session->arrange(claim::Waking::drain);
    polling_state_.start_draining(clock_.now());
  } catch (const Error& error) {
    // The next statement fails too, and its error is handled; the other collectors poll after the poll
    // interval.
    log_.debug("cannot notify the other collectors", {{"reason", error.what()}});
  }
}

void Waker::stay_polling(claim::QueueSession& session) {
  const auto before = polling_state_;
  // State first: a failed statement may have taken effect, and then this collector has to start listening.
  polling_state_.stays_polling(clock_.now());
  if (!session.arrange(claim::Waking::stay_polling)) polling_state_ = before;
}

void Waker::start_listening(claim::QueueSession& session) {
  session.arrange(claim::Waking::start_listening);
  polling_state_.start_draining(clock_.now());
}

PollingState::Advice PollingState::polled(const Sight& sight, TimePoint now) {
  const bool measured = measure(sight.last, now);
  const bool wanted = busy_ && options_.allowed;
  if (state_ == State::polling && !wanted) return Advice::start_listening;
  if (state_ == State::polling) next_poll_ = now + pause(sight.waiting);
  if (state_ == State::draining) {
    // Wait as long again as draining has lasted, however often a notification caused a poll meanwhile.
    next_poll_ = now + std::clamp<std::chrono::nanoseconds>(
                           now - draining_from_, 1ms, std::max<Milliseconds>(options_.poll_interval, 1ms));
  }
  // Once per measurement: if another collector is polling already, each attempt is a wasted round trip.
  return state_ != State::polling && wanted && measured ? Advice::stay_polling : Advice::none;
}

void PollingState::stays_polling(TimePoint now) {
  state_ = State::polling;
  next_poll_ = now + pause(false);
}

void PollingState::start_draining(TimePoint now) {
  state_ = State::draining;
  next_poll_ = now;
  draining_from_ = now;
}

bool PollingState::measure(std::int64_t last, TimePoint now) {
  const auto passed = now - measured_from_;
  if (passed < measure_time || last == 0) return false;
  const auto enough =
      (busy_ ? slow_tokens : fast_tokens) * std::chrono::duration_cast<Milliseconds>(passed).count() / 1000;
  busy_ = passed < longest_measure && last - last_at_measure_ >= enough;
  last_at_measure_ = last;
  measured_from_ = now;
  return true;
}

std::chrono::nanoseconds PollingState::pause(bool waiting) const {
  // While tokens wait, a poll before their timeout is useful only if enough tokens arrive to fill their
  // batch.
  const std::chrono::nanoseconds timeout = options_.batch_timeout;
  return std::clamp<std::chrono::nanoseconds>(waiting ? timeout : timeout / 2, shortest_pause, longest_pause);
}

}  // namespace mailroom::consumer
