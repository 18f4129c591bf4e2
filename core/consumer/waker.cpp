// Takes care of statements that fail and may have taken effect: then this collector listens again.

#include "consumer/waker.hpp"

#include "db/errors.hpp"

namespace mailroom {

void Waker::drain(QueueSession& session) {
  if (!polling_state_.is_polling()) start_listening(session);
}

bool Waker::is_last_poll(QueueSession& session) {
  return polling_state_.is_draining() && !session.arrange(Waking::ask);
}

void Waker::polled(QueueSession& session, const PollingState::Sight& sight, TimePoint started,
                   bool sink_is_ready) {
  const auto advice = polling_state_.polled(sight, started);
  if (advice == PollingState::Advice::stay_polling && sink_is_ready) stay_polling(session);
  if (advice == PollingState::Advice::start_listening) start_listening(session);
}

void Waker::hand_over(QueueSession* session) {
  if (session == nullptr || polling_state_.is_listening()) return;
  try {
    session->arrange(Waking::drain);
    polling_state_.start_draining(clock_.now());
  } catch (const Error& error) {
    // The next statement fails too, and its error is handled; the other collectors poll after the poll
    // interval.
    log_.debug("cannot notify the other collectors", {{"reason", error.what()}});
  }
}

void Waker::stay_polling(QueueSession& session) {
  const auto before = polling_state_;
  // State first: a failed statement may have taken effect, and then this collector has to start listening.
  polling_state_.stays_polling(clock_.now());
  if (!session.arrange(Waking::stay_polling)) polling_state_ = before;
}

void Waker::start_listening(QueueSession& session) {
  session.arrange(Waking::start_listening);
  polling_state_.start_draining(clock_.now());
}

}  // namespace mailroom
