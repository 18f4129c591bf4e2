#pragma once

#include <algorithm>
#include <fmt/format.h>
#include <sstream>
#include <string>
#include <vector>

#include "feed/event_feed.hpp"
#include "schema/bookkeeping.hpp"
#include "support/test_database.hpp"

namespace mailroom::test {

using Shown = std::vector<std::string>;

/// `created 7`: the event with the id of its token, batch or account, or the name of its queue.
inline std::string short_text(const Event& event) {
  const auto id = event.token ? event.token : event.batch ? event.batch : event.account;
  return fmt::format("{} {}", kind_text(event.kind), id ? std::to_string(*id) : event.queue);
}

/// A feed of a test's database, polled step by step.
class TestFeed {
 public:
  explicit TestFeed(const TestDatabase& database, HistoryRequest history = nothing(), EventFilter filter = {},
                    std::chrono::seconds window = std::chrono::minutes(5))
      : database_(database), feed_(history, std::move(filter), window, log_) {
    connect();
    feed_.start(*session_, true);
  }

  static HistoryRequest nothing() {
    HistoryRequest history;
    history.last = 0;
    return history;
  }
  static HistoryRequest everything() {
    HistoryRequest history;
    history.since = 0;
    return history;
  }

  /// Returns the events that were found and not taken yet.
  std::vector<Event> take() {
    std::vector<Event> events;
    while (feed_.has_more()) {
      for (auto& event : feed_.next(*session_))
        events.push_back(std::move(event));
    }
    return events;
  }

  Shown poll() {
    feed_.poll(*session_);
    Shown shown;
    for (const auto& event : take())
      shown.push_back(short_text(event));
    return shown;
  }

  void reconnect() {
    connect();
    feed_.resume(*session_);
  }

  std::string log() const { return messages_.str(); }
  FeedSession& session() { return *session_; }
  EventFeed& feed() { return feed_; }

 private:
  void connect() {
    session_ = std::make_unique<FeedSession>(database_.conninfo(), require_current_schema);
    session_->follow("token_insert");
  }

  const TestDatabase& database_;
  std::ostringstream messages_;
  Log log_{Log::Options{}, messages_};
  EventFeed feed_;
  std::unique_ptr<FeedSession> session_;
};

}  // namespace mailroom::test
