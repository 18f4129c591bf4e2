// Past events: which of them are read, and that the database filters them as the feed does.

#include "fate/outcome.hpp"
#include "support/catch.hpp"
#include "support/mail_rows.hpp"
#include "support/test_feed.hpp"
#include "support/test_queue.hpp"

namespace mailroom::test::feed_history_test {
namespace {

/// Events of every kind, half of them an hour old.
void fill(const TestDatabase& database) {
  const auto connection = database.connect();
  const auto session = attach(database);
  insert_accounts(*connection, 12);
  connection->run("UPDATE tokens SET consumed_at = extract(epoch FROM now()) - 3000 WHERE id IN (2, 3, 4)");
  connection->run("UPDATE tokens SET created_at = created_at - 3600 WHERE id <= 6");
  connection->run("UPDATE tokens SET expires_at = 0 WHERE id = 5");
  drain(*session, 4);
  connection->run(
      "INSERT INTO tokens (account, action) SELECT g, 'password_recovery' FROM generate_series(2, 4) g");
  drain(*session, 4);
  connection->run("UPDATE tokens SET consumed_at = extract(epoch FROM now()) WHERE id = 13");
  connection->run("INSERT INTO tokens (account, action) VALUES (9, 'password_recovery')");
  drain(*session, 4);
  connection->run("UPDATE accounts SET status = 'suspended' WHERE id IN (2, 7)");
  connection->run("UPDATE accounts SET status = 'active' WHERE id = 7");
  connection->run("SELECT mailroom_rewind('mailroom', 15, 1000, '{}')");
  connection->run("UPDATE mailroom_batches SET attempts = 2 WHERE id = 1");
  for (const auto outcome : fate::delivery_outcomes) {
    const std::string word = fate::outcome_name(outcome);
    record(*connection, {.token = 7, .state = word, .code = 450, .reply = word});
  }
  for (const std::int64_t token : {2, 13})
    record(*connection, {.token = token, .state = "accepted", .code = 250, .reply = "ok"});
  record(*connection, {.token = 2, .state = "deferred"});
}

Shown texts(const std::vector<feed::Event>& events) {
  Shown shown;
  for (const auto& event : events)
    shown.push_back(short_text(event));
  return shown;
}

Shown past(const TestDatabase& database, const feed::HistoryRequest& history,
           const feed::EventFilter& filter = {}) {
  return texts(TestFeed(database, history, filter).take());
}

feed::HistoryRequest last(std::int64_t count) {
  feed::HistoryRequest history;
  history.last = count;
  return history;
}

}  // namespace

TEST_CASE("past events are shown in order of time, and the last N are the end of that order") {
  TestDatabase database;
  fill(database);
  TestFeed feed(database, TestFeed::everything());
  const auto events = feed.take();
  CHECK(events.size() > 25);
  // The times of tokens are rounded to seconds.
  for (std::size_t i = 1; i < events.size(); ++i)
    CHECK(in_seconds(events[i - 1].at) <= in_seconds(events[i].at) + 1);
  const auto all = texts(events);
  for (const std::int64_t count : {0, 1, 7, 20, 1000}) {
    INFO(count);
    const auto from = std::max<std::int64_t>(0, static_cast<std::int64_t>(all.size()) - count);
    CHECK(past(database, last(count)) == Shown(all.begin() + from, all.end()));
  }
}

TEST_CASE("a start by time or by token omits earlier events") {
  TestDatabase database;
  fill(database);
  feed::HistoryRequest recent;
  recent.since = database.connect()->server_time() - std::chrono::minutes(30);
  const auto shown = past(database, recent);
  CHECK(std::count(shown.begin(), shown.end(), "created 6") == 0);
  CHECK(std::count(shown.begin(), shown.end(), "created 7") == 1);
  CHECK(std::count(shown.begin(), shown.end(), "consumed 2") == 0);
  CHECK(std::count(shown.begin(), shown.end(), "consumed 13") == 1);
  recent.last = 2;
  CHECK(past(database, recent) == Shown(shown.end() - 2, shown.end()));

  feed::HistoryRequest from;
  from.from_token = 8;
  feed::EventFilter filter;
  filter.from_token = 8;
  const auto from_token = past(database, from, filter);
  CAPTURE(from_token);
  CHECK(std::count(from_token.begin(), from_token.end(), "created 7") == 0);
  CHECK(std::count(from_token.begin(), from_token.end(), "created 8") == 1);
  CHECK(std::count(from_token.begin(), from_token.end(), "suspended 2") == 1);
  from.from_token = 1000;
  CHECK(past(database, from, filter).empty());
}

TEST_CASE("the database filters past events as the feed filters new ones") {
  TestDatabase database;
  fill(database);
  std::vector<feed::EventFilter> filters;
  for (const auto& state : feed::state_text()) {
    filters.emplace_back();
    filters.back().states = {state};
  }
  for (const auto* action : {"activation", "password_recovery"}) {
    filters.emplace_back();
    filters.back().action = action;
    filters.emplace_back(filters.back());
    filters.back().accounts = {2, 7};
    filters.emplace_back(filters.back());
    filters.back().states = {"consumed", "emitted", "due"};
  }
  filters.emplace_back();
  filters.back().accounts = {2};
  filters.emplace_back();
  filters.back().accounts = {7, 3};
  filters.back().states = {"suspended", "restored", "taken-over"};

  int found = 0;
  for (const auto& filter : filters) {
    INFO((filter.action ? *filter.action : "any")
         << " " << filter.accounts.size() << " " << (filter.states.empty() ? "any" : filter.states[0]));
    // Compares all past events, filtered by the feed, with as many from the filtered query; the two differ if
    // the database's filter returns too many or too few.
    TestFeed unfiltered(database, TestFeed::everything(), filter);
    const auto wanted = texts(unfiltered.take());
    found += static_cast<int>(wanted.size());
    CHECK(past(database, last(static_cast<std::int64_t>(wanted.size())), filter) == wanted);
    const auto keys = [&] {
      std::vector<feed::EventKey> all;
      TestFeed feed(database);
      feed.session().transact([&](pqxx::work& transaction) {
        all = feed::read_history(transaction, TestFeed::everything(), filter);
      });
      return all;
    }();
    CHECK(keys.size() == wanted.size());
  }
  CHECK(found > 40);
}

TEST_CASE("a batch's event has the tokens that match the filter") {
  TestDatabase database;
  fill(database);
  feed::EventFilter filter;
  filter.accounts = {7, 8};
  filter.states = {"emitted"};
  const auto events = TestFeed(database, TestFeed::everything(), filter).take();
  std::vector<std::int64_t> matches;
  for (const auto& event : events)
    matches.insert(matches.end(), event.matches->begin(), event.matches->end());
  CHECK(matches == std::vector<std::int64_t>{7, 8});
}

}  // namespace mailroom::test::feed_history_test
