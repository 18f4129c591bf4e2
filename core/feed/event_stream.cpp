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
                         Environment& environment, Log& log)
    : feed_(feed),
      session_(std::move(session)),
      connect_(std::move(connect)),
      environment_(environment),
      log_(log),
      backoff_(std::random_device{}()),
      retries_(log) {}

void EventStream::run(bool follow, const Show& show) {
  feed_.start(*session_, follow);
  while (!finished()) {
    try {
      if (!session_) reconnect();
      if (session_) {
        if (!show_all(show) || !follow) return;
        wait();
        if (!finished()) poll();
      }
    } catch (const ConnectionLost& error) {
      if (!follow) throw;
      if (session_) retries_.worked();
      retries_.failed("connection lost", error.what(), environment_.now());
      session_.reset();
    } catch (const DatabaseError& error) {
      if (!follow || !is_transient(error)) throw;
      log_.warn("statement failed, trying again", {{"reason", error.what()}});
      environment_.sleep_for(backoff_.next());
    }
  }
}

void EventStream::take_notifications() {
  try {
    if (session_) session_->connection().take_notifications();
  } catch (const ConnectionLost& error) {
    // The next statement fails too, and run() then replaces the session.
    log_.debug("the session has ended", {{"reason", error.what()}});
  }
}

bool EventStream::finished() {
  // A terminal that closes sends SIGHUP.
  hung_up_ = hung_up_ || environment_.take_reload();
  return hung_up_ || environment_.stop_requested();
}

bool EventStream::show_all(const Show& show) {
  while (feed_.has_more() && !finished()) {
    if (!show(feed_.next(*session_))) return false;
  }
  return true;
}

void EventStream::poll() {
  const auto started = environment_.now();
  feed_.poll(*session_);
  backoff_.reset();
  retries_.worked();
  // Pause four times as long as the poll took, to spare a slow server.
  const auto ended = environment_.now();
  const auto pause = std::clamp<TimePoint::duration>((ended - started) * 4, shortest_pause, longest_pause);
  earliest_poll_ = ended + pause;
  next_poll_ = std::max(started + poll_interval, earliest_poll_);
}

void EventStream::wait() {
  auto& connection = session_->connection();
  if (!connection.take_notifications()) {
    environment_.wait(connection.socket(), next_poll_);
    connection.take_notifications();
  }
  const auto left = std::chrono::ceil<Milliseconds>(earliest_poll_ - environment_.now());
  if (left.count() > 0) environment_.sleep_for(left);
}

void EventStream::reconnect() {
  environment_.sleep_for(backoff_.next());
  if (finished()) return;
  session_ = connect_();
  feed_.resume(*session_);
  if (retries_.is_news()) log_.info("connected again");
}

}  // namespace mailroom
