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

/// `created 7`: the event with the id of its token, batch or account, or the name of its queue. `mail
/// accepted 7`.
inline std::string short_text(const feed::Event& event) {
  if (event.delivery() != nullptr)
    return fmt::format("delivery {} {}", event.state(), event.delivery()->token.id);
  std::string subject = event.account() != nullptr ? std::to_string(event.account()->id) : event.queue();
  if (event.batch() != nullptr) subject = std::to_string(event.batch()->id);
  if (event.token() != nullptr) subject = std::to_string(event.token()->id);
  return fmt::format("{} {}", feed::kind_text(event.kind), subject);
}

/// A feed of a test's database, polled step by step.
class TestFeed {
 public:
  explicit TestFeed(const TestDatabase& database, feed::HistoryRequest history = nothing(),
                    feed::EventFilter filter = {}, std::chrono::seconds window = std::chrono::minutes(5))
      : feed_(
            connect(database), [&database] { return connect(database); }, history, std::move(filter), window,
            log_) {
    feed_.start(true);
  }

  static feed::HistoryRequest nothing() {
    feed::HistoryRequest history;
    history.last = 0;
    return history;
  }
  static feed::HistoryRequest everything() {
    feed::HistoryRequest history;
    history.since = Moment();
    return history;
  }

  /// Returns the events that were found and not taken yet.
  std::vector<feed::Event> take() {
    std::vector<feed::Event> events;
    while (feed_.has_more()) {
      for (auto& event : feed_.next())
        events.push_back(std::move(event));
    }
    return events;
  }

  Shown poll() {
    feed_.poll();
    Shown shown;
    for (const auto& event : take())
      shown.push_back(short_text(event));
    return shown;
  }

  void reconnect() { feed_.reconnect(); }

  std::string log() const { return messages_.str(); }
  db::Connection& session() { return feed_.session(); }
  feed::EventFeed& feed() { return feed_; }

 private:
  static std::unique_ptr<db::Connection> connect(const TestDatabase& database) {
    return feed::connect_reader(database.conninfo(), schema::require_current_schema, "token_insert");
  }

  std::ostringstream messages_;
  Log log_{Log::Options{}, messages_};
  feed::EventFeed feed_;
};

}  // namespace mailroom::test
