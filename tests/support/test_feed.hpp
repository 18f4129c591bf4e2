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

using Told = std::vector<std::string>;

/// `created 7`, with the id of the token, batch, account or queue that it is about.
inline std::string short_text(const Event& event) {
  const auto id = event.token ? event.token : event.batch ? event.batch : event.account;
  return fmt::format("{} {}", word_text(event.word), id ? std::to_string(*id) : event.queue);
}

/// A feed of a test's database, looked at step by step.
class TestFeed {
 public:
  explicit TestFeed(const TestDatabase& database, HistoryRequest history = nothing(), EventFilter filter = {},
                    std::int64_t slack = EventFeed::default_slack)
      : database_(database), feed_(history, std::move(filter), log_, slack) {
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

  /// What has not been told yet of what was found.
  std::vector<Event> take() {
    std::vector<Event> events;
    while (feed_.has_more()) {
      for (auto& event : feed_.next(*session_))
        events.push_back(std::move(event));
    }
    return events;
  }

  /// Looks as often as it takes to settle what has ended: once to find it, once to see that nobody holds it.
  Told poll() {
    for (int i = 0; i < 2; ++i)
      feed_.poll(*session_);
    Told told;
    for (const auto& event : take())
      told.push_back(short_text(event));
    return told;
  }

  void reconnect() {
    connect();
    feed_.resume(*session_);
  }

  std::size_t open_gaps() const { return feed_.open_gaps(); }
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
