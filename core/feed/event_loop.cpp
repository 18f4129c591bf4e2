// EventFeed::run(): waits for notifications, spares a slow server, and survives a lost session.

#include <algorithm>

#include "feed/event_feed.hpp"
#include "process/backoff.hpp"
#include "process/retry_log.hpp"

namespace mailroom {
namespace {

constexpr Milliseconds poll_interval{200};
constexpr Milliseconds shortest_pause{20};
constexpr Milliseconds longest_pause{1000};

}  // namespace

void EventFeed::run(bool follow, Environment& environment, const Show& show) {
  Backoff backoff(environment.random_seed());
  RetryLog retries(log_);
  Pace pace;
  bool hung_up = false;
  const auto finished = [&] {
    // A terminal that closes sends SIGHUP.
    hung_up = hung_up || environment.take_reload();
    return hung_up || environment.stop_requested();
  };
  start(follow);
  for (bool is_lost = false; !finished();) {
    try {
      if (is_lost) {
        environment.sleep_for(backoff.next());
        if (finished()) return;
        reconnect();
        is_lost = false;
        if (retries.is_news()) log_.info("connected again");
      }
      while (has_more() && !finished()) {
        if (!show(next())) return;
      }
      if (!follow) return;
      wait(environment, pace);
      if (finished()) return;
      pace = poll_in(environment);
      backoff.reset();
      retries.worked();
    } catch (const ConnectionLost& error) {
      if (!follow) throw;
      if (is_lost && finished()) return;
      if (!is_lost) retries.worked();
      retries.failed("connection lost", error.what(), environment.now());
      is_lost = true;
    } catch (const DatabaseError& error) {
      if (!follow || !is_transient(error)) throw;
      log_.warn("statement failed, trying again", {{"reason", error.what()}});
      environment.sleep_for(backoff.next());
    }
  }
}

EventFeed::Pace EventFeed::poll_in(Environment& environment) {
  const auto started = environment.now();
  poll();
  // Pause four times as long as the poll took, to spare a slow server.
  const auto ended = environment.now();
  const auto pause = std::clamp<TimePoint::duration>((ended - started) * 4, shortest_pause, longest_pause);
  return {.next = std::max(started + poll_interval, ended + pause), .earliest = ended + pause};
}

void EventFeed::wait(Environment& environment, const Pace& pace) {
  if (!session_->take_notifications()) {
    environment.wait(session_->socket(), pace.next);
    session_->take_notifications();
  }
  const auto left = std::chrono::ceil<Milliseconds>(pace.earliest - environment.now());
  if (left.count() > 0) environment.sleep_for(left);
}

}  // namespace mailroom
