#pragma once

#include <functional>
#include <memory>

#include "base/log.hpp"
#include "feed/event_feed.hpp"
#include "process/backoff.hpp"
#include "process/environment.hpp"
#include "process/retry_log.hpp"

namespace mailroom {

/// Runs a feed: shows past events, then, with `follow`, polls on each notification and every 200 ms, and
/// reconnects when the session is lost. No transaction is open between polls.
class EventStream {
 public:
  using Connect = std::function<std::unique_ptr<FeedSession>()>;
  /// Returns false to stop.
  using Show = std::function<bool(const std::vector<Event>& events)>;

  /// Starts with `session`; `connect` opens later ones, ready to follow.
  EventStream(EventFeed& feed, std::unique_ptr<FeedSession> session, Connect connect,
              Environment& environment, Log& log);

  /// Returns when a stop is requested, the terminal closes, `show` returns false or, without `follow`, after
  /// the last past event. Throws errors that a new session does not solve.
  void run(bool follow, const Show& show);

  /// Call it about every second while `show` waits for a slow reader. It receives this session's
  /// notifications, which the server otherwise keeps in its queue.
  void take_notifications();

 private:
  bool finished();
  bool show_all(const Show& show);
  void poll();
  void wait();
  void reconnect();

  EventFeed& feed_;
  std::unique_ptr<FeedSession> session_;
  Connect connect_;
  Environment& environment_;
  Log& log_;
  Backoff backoff_;
  RetryLog retries_;
  bool hung_up_ = false;
  TimePoint next_poll_{};      ///< without a notification
  TimePoint earliest_poll_{};  ///< with one
};

}  // namespace mailroom
