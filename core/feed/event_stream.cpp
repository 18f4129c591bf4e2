#include "feed/event_stream.hpp"

#include <algorithm>
#include <random>

namespace mailroom {
namespace {

constexpr Milliseconds poll_interval{200};
constexpr Milliseconds shortest_pause{20};
constexpr Milliseconds longest_pause{1000};

}  // namespace

EventStream::EventStream(EventFeed& feed, std::unique_ptr<FeedSession> session, Connect connect,
                         Surroundings& surroundings, Log& log)
    : feed_(feed),
      session_(std::move(session)),
      connect_(std::move(connect)),
      surroundings_(surroundings),
      log_(log),
      backoff_(std::random_device{}()),
      retries_(log) {}

void EventStream::run(bool follow, const Tell& tell) {
  feed_.start(*session_, follow);
  while (!finished()) {
    try {
      if (!session_) reconnect();
      if (session_) {
        if (!tell_all(tell) || !follow) return;
        wait();
        if (!finished()) poll();
      }
    } catch (const ConnectionLost& error) {
      if (!follow) throw;
      if (session_) retries_.worked();
      retries_.failed("connection lost", error.what(), surroundings_.now());
      session_.reset();
    } catch (const DatabaseError& error) {
      if (!follow || !is_transient(error)) throw;
      log_.warn("statement failed, trying again", {{"reason", error.what()}});
      surroundings_.sleep_for(backoff_.next());
    }
  }
}

void EventStream::stay_awake() {
  try {
    if (session_) session_->connection().take_notifications();
  } catch (const ConnectionLost& error) {
    // The next statement says it again, where it can be mended.
    log_.debug("the session has ended meanwhile", {{"reason", error.what()}});
  }
}

bool EventStream::finished() {
  // A terminal that goes away sends SIGHUP.
  hung_up_ = hung_up_ || surroundings_.take_reload();
  return hung_up_ || surroundings_.stop_requested();
}

bool EventStream::tell_all(const Tell& tell) {
  while (feed_.has_more() && !finished()) {
    if (!tell(feed_.next(*session_))) return false;
  }
  return true;
}

void EventStream::poll() {
  const auto started = surroundings_.now();
  feed_.poll(*session_);
  backoff_.reset();
  retries_.worked();
  // However slow the server is, it has most of the time for others.
  const auto ended = surroundings_.now();
  const auto pause = std::clamp<TimePoint::duration>((ended - started) * 4, shortest_pause, longest_pause);
  earliest_poll_ = ended + pause;
  next_poll_ = std::max(started + poll_interval, earliest_poll_);
}

void EventStream::wait() {
  auto& connection = session_->connection();
  if (!connection.take_notifications()) {
    surroundings_.wait(connection.socket(), next_poll_);
    connection.take_notifications();
  }
  const auto left = std::chrono::ceil<Milliseconds>(earliest_poll_ - surroundings_.now());
  if (left.count() > 0) surroundings_.sleep_for(left);
}

void EventStream::reconnect() {
  surroundings_.sleep_for(backoff_.next());
  if (finished()) return;
  session_ = connect_();
  feed_.resume(*session_);
  if (retries_.is_news()) log_.info("connected again");
}

}  // namespace mailroom
