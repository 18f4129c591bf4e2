// The stream behind mailroom tail.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "feed/past_events.hpp"
#include "process/environment.hpp"

namespace mailroom::feed {

/// Opens a session whose transactions are READ ONLY and REPEATABLE READ, and calls `check_schema`. Listens on
/// `channel`, unless it is empty or the server is a standby, which has no notifications. Throws
/// Error(configuration) if a pooler shares the session, and ConnectionLost when `stop`, which may be null,
/// requests a stop while it connects.
std::unique_ptr<db::Connection> connect_reader(const db::DatabaseTarget& target,
                                               const std::function<void(db::Connection&)>& check_schema,
                                               const std::string& channel,
                                               const process::StopSignal* stop = nullptr);

/// A stream of events: past ones and then, at each poll, those that have not been shown.
///
/// Each poll re-reads the last seconds, and every few seconds the whole window, and omits events that it has
/// shown. So an event that is committed late is shown, unless it is older than the window by then. The events
/// of one poll are in order of time. The feed continues in a new session after its session is lost.
class EventFeed {
 public:
  /// Opens a session: connect_reader().
  using Connect = std::function<std::unique_ptr<db::Connection>()>;

  /// Starts with `session`; `connect` opens later ones. `window` = how far back polls read.
  EventFeed(std::unique_ptr<db::Connection> session, Connect connect, HistoryRequest history,
            EventFilter filter, std::chrono::seconds window, Log& log);

  /// Returns false to stop.
  using Show = std::function<bool(const std::vector<Event>& events)>;

  /// Shows past events, then, with `follow`, polls on each notification and every 200 ms, and reconnects when
  /// the session is lost. No transaction is open between polls. Returns when a stop is requested, the
  /// terminal closes, `show` returns false or, without `follow`, after the last past event. Throws errors
  /// that a new session does not solve.
  void run(bool follow, process::Environment& environment, const Show& show);

  // The steps of run().

  /// Reads the past events. With `follow` it also marks the events of the window as shown, in the same
  /// snapshot.
  void start(bool follow);
  /// Finds new events. Runs one statement if no transaction has ended since the last poll.
  void poll();
  /// Call it when the session is lost. If the new one's database is a different one, warns and starts again
  /// from now.
  void reconnect();

  /// True while next() has events to return.
  bool has_more() const { return !pending_.empty(); }
  /// Returns and removes the next events; possibly none, if none of them matches the filter.
  std::vector<Event> next();

  /// Call it about every second while a slow reader is waited for. It receives this session's notifications,
  /// which the server otherwise keeps in its queue.
  void take_notifications();

  db::Connection& session() { return *session_; }

 private:
  struct Pace {
    TimePoint next{};      ///< of the next poll, without a notification
    TimePoint earliest{};  ///< with one
  };
  struct ServerState {
    std::string snapshot;  ///< unchanged if no transaction has ended since
    Moment now{};          ///< the server's clock, in whole seconds
  };

  ServerState read_state();
  std::string identity();
  Pace poll_in(process::Environment& environment);
  void wait(process::Environment& environment, const Pace& pace);
  std::vector<EventKey> read_from(pqxx::work& transaction, Moment since) const;
  void show_new(const std::vector<EventKey>& found);

  std::unique_ptr<db::Connection> session_;
  Connect connect_;
  HistoryRequest history_;
  EventFilter filter_;
  std::chrono::seconds window_;
  Log& log_;

  std::string identity_;         ///< of the cluster and the database
  ServerState last_;             ///< of the last poll
  bool read_window_ = false;     ///< the last poll read the whole window
  Moment since_{};               ///< the start of the window, which never moves back
  std::vector<EventKey> shown_;  ///< of the window, in order
  std::deque<EventKey> pending_;
  std::chrono::steady_clock::time_point next_window_{};
};

}  // namespace mailroom::feed
