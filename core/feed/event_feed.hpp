#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "feed/event.hpp"
#include "feed/feed_session.hpp"
#include "feed/history.hpp"

namespace mailroom {

/// A stream of events: past ones and then, at each poll, those that have not been shown.
///
/// Each poll re-reads the last seconds, and every few seconds the whole window, and omits events that it has
/// shown. So an event that is committed late is shown, unless it is older than the window by then. The events
/// of one poll are in order of time. The feed continues in a new session after its session is lost.
class EventFeed {
 public:
  /// `window` = how far back polls read.
  EventFeed(HistoryRequest history, EventFilter filter, std::chrono::seconds window, Log& log);

  /// Reads the past events. With `follow` it also marks the events of the window as shown, in the same
  /// snapshot.
  void start(FeedSession& session, bool follow);
  /// Call it with each new session. If the database is a different one, warns and starts again from now.
  void resume(FeedSession& session);
  /// Finds new events. Runs one statement if no transaction has ended since the last poll.
  void poll(FeedSession& session);

  /// True while next() has events to return.
  bool has_more() const { return !pending_.empty(); }
  /// Returns and removes the next events; possibly none, if none of them matches the filter.
  std::vector<Event> next(FeedSession& session);

 private:
  bool is_window_due() const;
  std::vector<EventKey> read_from(pqxx::work& transaction, std::int64_t second) const;
  void show_new(const std::vector<EventKey>& found);

  HistoryRequest history_;
  EventFilter filter_;
  std::int64_t window_;  ///< seconds
  Log& log_;

  std::string identity_;
  FeedSession::Moment last_;     ///< of the last poll
  bool read_window_ = false;     ///< the last poll read the whole window
  std::int64_t since_ = 0;       ///< the start of the window, which never moves back; seconds since 1970
  std::vector<EventKey> shown_;  ///< of the window, in order
  std::deque<EventKey> pending_;
  std::chrono::steady_clock::time_point next_window_{};
};

}  // namespace mailroom
