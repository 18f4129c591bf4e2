#pragma once

#include <functional>
#include <memory>

#include "base/log.hpp"
#include "base/retry_log.hpp"
#include "feed/event_feed.hpp"
#include "queue/backoff.hpp"
#include "queue/surroundings.hpp"

namespace mailroom {

/// Runs a feed: tells the past, then, if asked to, looks again and again, whenever a notification comes and
/// every 200 ms, and connects anew when the session is lost. Between two looks no transaction is open.
class EventStream {
 public:
  using Connect = std::function<std::unique_ptr<FeedSession>()>;
  /// Returns false when it has heard enough.
  using Tell = std::function<bool(const std::vector<Event>& events)>;

  /// Starts with `session`; `connect` makes the next ones, ready to follow.
  EventStream(EventFeed& feed, std::unique_ptr<FeedSession> session, Connect connect,
              Surroundings& surroundings, Log& log);

  /// Returns at the end of the past, or, with `follow`, when a stop is requested, the terminal is gone or
  /// `tell` has heard enough. Throws what ends a session for good.
  void run(bool follow, const Tell& tell);

  /// To be called every second or so while `tell` waits for a slow reader, so that the server is not kept
  /// from clearing out notifications that this session has not taken.
  void stay_awake();

 private:
  bool finished();
  bool tell_all(const Tell& tell);
  void poll();
  void wait();
  void reconnect();

  EventFeed& feed_;
  std::unique_ptr<FeedSession> session_;
  Connect connect_;
  Surroundings& surroundings_;
  Log& log_;
  Backoff backoff_;
  RetryLog retries_;
  bool hung_up_ = false;
  TimePoint next_poll_{};      ///< without a notification
  TimePoint earliest_poll_{};  ///< with one
};

}  // namespace mailroom
