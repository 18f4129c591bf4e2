#include "queue/waker.hpp"

#include "db/errors.hpp"

namespace mailroom {

void Waker::settle(QueueSession& session) {
  if (!wakefulness_.is_awake()) fall_asleep(session);
}

bool Waker::is_last_look(QueueSession& session) {
  return wakefulness_.is_settling() && !session.arrange(Waking::ask);
}

void Waker::looked(QueueSession& session, const Wakefulness::Sight& sight, TimePoint started) {
  const auto advice = wakefulness_.looked(sight, started);
  // A reader that is behind would only send it to sleep again.
  if (advice == Wakefulness::Advice::stay_awake && output_.takes_more()) stay_awake(session);
  if (advice == Wakefulness::Advice::fall_asleep) fall_asleep(session);
}

void Waker::hand_over(QueueSession* session) {
  if (session == nullptr || wakefulness_.is_asleep()) return;
  try {
    session->arrange(Waking::make_way);
    wakefulness_.settle(clock_.now());
  } catch (const Error& error) {
    // The next statement says it again, where it can be mended; others look after the poll interval.
    log_.debug("others could not be told to look", {{"reason", error.what()}});
  }
}

void Waker::stay_awake(QueueSession& session) {
  const auto before = wakefulness_;
  // First: a statement that fails may have had its effect, and then it has to fall asleep.
  wakefulness_.stays_awake(clock_.now());
  if (!session.arrange(Waking::stay_awake)) wakefulness_ = before;
}

void Waker::fall_asleep(QueueSession& session) {
  session.arrange(Waking::fall_asleep);
  wakefulness_.settle(clock_.now());
}

}  // namespace mailroom
