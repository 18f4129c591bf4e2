// Which events a filter matches, without a database.

#include "base/text.hpp"
#include "feed/past_events.hpp"
#include "schema/migration.hpp"
#include "support/catch.hpp"

namespace mailroom::test::feed_test {

TEST_CASE("a filter matches an event that all of its parts match") {
  feed::Event created{
      .kind = feed::EventKind::created,
      .record = feed::StoredToken{.id = 7, .action = "activation", .state = "due", .account = {.id = 3}}};
  CHECK(feed::EventFilter{}.wants(created));
  feed::EventFilter filter;
  filter.action = "activation";
  filter.accounts = {2, 3};
  filter.states = {"due", "emitted"};
  CHECK(filter.wants(created));
  filter.from_token = 8;
  CHECK_FALSE(filter.wants(created));
  filter = {.action = "password_recovery", .accounts = {}, .states = {}, .from_token = 0};
  CHECK_FALSE(filter.wants(created));
  filter = {.action = {}, .accounts = {4}, .states = {}, .from_token = 0};
  CHECK_FALSE(filter.wants(created));
  filter = {.action = {}, .accounts = {}, .states = {"expired"}, .from_token = 0};
  CHECK_FALSE(filter.wants(created));
  CHECK(filter.may_want(feed::EventKind::created));
}

TEST_CASE("the state created matches every token at its creation, and no later event") {
  feed::EventFilter filter;
  filter.states = {"created"};
  feed::Event event{.kind = feed::EventKind::created};
  for (const auto* state : {"due", "expired", "consumed", "wrong status"}) {
    event.record = feed::StoredToken{.state = state};
    CHECK(filter.wants(event));
  }
  event.kind = feed::EventKind::consumed;
  CHECK_FALSE(filter.wants(event));
}

TEST_CASE("a filter by account matches batches with its tokens, and operations on the account") {
  feed::EventFilter filter;
  filter.accounts = {3};
  feed::Event batch{.kind = feed::EventKind::emitted,
                    .record = queue::BatchRecord{.id = 1},
                    .matches = std::vector<std::int64_t>{}};
  CHECK_FALSE(filter.wants(batch));
  batch.matches->push_back(5);
  CHECK(filter.wants(batch));
  CHECK_FALSE(filter.may_want(feed::EventKind::skipped));
  CHECK_FALSE(filter.may_want(feed::EventKind::rewound));
  CHECK(filter.may_want(feed::EventKind::suspended));
  filter.action = "activation";
  CHECK_FALSE(filter.may_want(feed::EventKind::suspended));
}

TEST_CASE("every kind of event has a text that is a state of the filter") {
  for (int i = 0; i <= static_cast<int>(feed::EventKind::consumed); ++i) {
    const auto word = static_cast<feed::EventKind>(i);
    const std::string text(feed::kind_text(word));
    const auto& states = feed::state_text();
    CHECK(std::count(states.begin(), states.end(), text) == 1);
  }
}

TEST_CASE("each kind of operation that the table takes has a name among the events") {
  for (const auto& migration : schema::embedded_migrations()) {
    if (migration.name != schema::queue_migration) continue;
    const std::string_view begin = "kind    text NOT NULL CHECK (kind IN (";
    const auto from = migration.up.find(begin) + begin.size();
    const auto kinds = std::string_view(migration.up).substr(from, migration.up.find("))", from) - from);
    std::size_t count = 0;
    for (const auto kind : split(kinds, ',')) {
      const auto quoted = trimmed(kind);
      const auto name = quoted.substr(1, quoted.size() - 2);
      INFO(name);
      CHECK_FALSE(feed::kind_text(feed::find_kind(name)).empty());
      ++count;
    }
    CHECK(count > 20);
  }
}

}  // namespace mailroom::test::feed_test
