// Which events a filter matches, without a database.

#include "feed/past_events.hpp"
#include "support/catch.hpp"

namespace mailroom::test::feed_test {

TEST_CASE("a filter matches an event that all of its parts match") {
  Event created{.kind = EventKind::created,
                .record = StoredToken{.id = 7, .action = "activation", .state = "due", .account = {.id = 3}}};
  CHECK(EventFilter{}.wants(created));
  EventFilter filter;
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
  CHECK(filter.may_want(EventKind::created));
}

TEST_CASE("the state created matches every token at its creation, and no later event") {
  EventFilter filter;
  filter.states = {"created"};
  Event event{.kind = EventKind::created};
  for (const auto* state : {"due", "expired", "consumed", "wrong status"}) {
    event.record = StoredToken{.state = state};
    CHECK(filter.wants(event));
  }
  event.kind = EventKind::consumed;
  CHECK_FALSE(filter.wants(event));
}

TEST_CASE("a filter by account matches batches with its tokens, and operations on the account") {
  EventFilter filter;
  filter.accounts = {3};
  Event batch{
      .kind = EventKind::emitted, .record = BatchRecord{.id = 1}, .matches = std::vector<std::int64_t>{}};
  CHECK_FALSE(filter.wants(batch));
  batch.matches->push_back(5);
  CHECK(filter.wants(batch));
  CHECK_FALSE(filter.may_want(EventKind::skipped));
  CHECK_FALSE(filter.may_want(EventKind::rewound));
  CHECK(filter.may_want(EventKind::suspended));
  filter.action = "activation";
  CHECK_FALSE(filter.may_want(EventKind::suspended));
}

TEST_CASE("every kind of event has a text that is a state of the filter") {
  for (int i = 0; i <= static_cast<int>(EventKind::consumed); ++i) {
    const auto word = static_cast<EventKind>(i);
    const std::string text(kind_text(word));
    const auto& states = state_text();
    CHECK(std::count(states.begin(), states.end(), text) == 1);
  }
}

}  // namespace mailroom::test::feed_test
