#include "audit/history.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "selection/id_range.hpp"
#include "support/catch.hpp"

namespace mailroom::test::timeline_test {

using namespace std::chrono_literals;

namespace {

feed::Event token_event(feed::EventKind kind, std::int64_t seconds) {
  return {kind, Moment(std::chrono::seconds(seconds)), feed::StoredToken{.id = 51, .action = "activation"}};
}

feed::Event account_event(feed::EventKind kind, std::int64_t seconds) {
  return {kind, Moment(std::chrono::seconds(seconds)), accounts::AccountRecord{.id = 7}};
}

feed::Event operation_at(std::int64_t milliseconds) {
  return {feed::EventKind::suspended, Moment(Milliseconds(milliseconds)),
          feed::Operation{.kind = feed::EventKind::suspended}};
}

std::vector<std::int64_t> times(const audit::Timeline& timeline) {
  std::vector<std::int64_t> all;
  for (const auto& entry : timeline.entries)
    all.push_back(entry.at.time_since_epoch() / 1ms);
  return all;
}

}  // namespace

TEST_CASE("within one second creations come before, and endings after, entries with exact times") {
  audit::Timeline timeline;
  timeline.entries = {account_event(feed::EventKind::activated, 100),
                      token_event(feed::EventKind::consumed, 100), operation_at(100'250),
                      token_event(feed::EventKind::created, 100),
                      account_event(feed::EventKind::created, 100)};
  timeline.arrange({}, 10);
  REQUIRE(timeline.entries.size() == 5);
  CHECK(timeline.entries[0].kind == feed::EventKind::created);
  CHECK(timeline.entries[0].token() == nullptr);
  CHECK(timeline.entries[1].kind == feed::EventKind::created);
  CHECK(timeline.entries[1].token() != nullptr);
  CHECK(timeline.entries[2].kind == feed::EventKind::suspended);
  CHECK(timeline.entries[3].kind == feed::EventKind::consumed);
  CHECK(timeline.entries[4].kind == feed::EventKind::activated);
}

TEST_CASE("a creation comes after what happened in the second before its own") {
  audit::Timeline timeline;
  timeline.entries = {token_event(feed::EventKind::created, 100), operation_at(99'700)};
  timeline.arrange({}, 10);
  CHECK(times(timeline) == std::vector<std::int64_t>{99'700, 100'000});
}

TEST_CASE("of too many entries the newest are kept, and the others are counted") {
  audit::Timeline timeline;
  timeline.entries = {operation_at(3000), operation_at(1000), operation_at(4000), operation_at(2000)};
  timeline.arrange({}, 3);
  CHECK(times(timeline) == std::vector<std::int64_t>{2000, 3000, 4000});
  CHECK(timeline.omitted == 1);
}

TEST_CASE("a period includes its beginning and excludes its end") {
  audit::Timeline timeline;
  timeline.entries = {operation_at(1999), operation_at(2000), operation_at(2999), operation_at(3000)};
  timeline.arrange({.since = Moment(2s), .until = Moment(3s)}, 10);
  CHECK(times(timeline) == std::vector<std::int64_t>{2000, 2999});
  CHECK(timeline.omitted == 0);
}

TEST_CASE("two moments make a period") {
  const Moment now(10'000s);
  const auto period = audit::parse_period("2h", "30m", now);
  CHECK(period.since == Moment(2800s));
  CHECK(period.until == Moment(8200s));
  CHECK(audit::parse_period("", "", now).since < Moment());
  CHECK(audit::parse_period("1h", "", now).until > now);
  CHECK_THROWS_AS(audit::parse_period("30m", "2h", now), Error);
  CHECK_THROWS_AS(audit::parse_period("1h", "1h", now), Error);
  CHECK_THROWS_AS(audit::parse_period("yesterday", "", now), Error);
  CHECK_THROWS_AS(audit::parse_period("", "soon", now), Error);
}

TEST_CASE("a batch's time is that of its acknowledgement, of its dead letter, or else of its claim") {
  audit::Timeline timeline;
  queue::BatchRecord batch{.id = 1, .claimed_at = Moment(1s)};
  timeline.add(batch);
  batch.dead_at = Moment(3s);
  timeline.add(batch);
  batch.emitted_at = Moment(2s);
  timeline.add(batch);
  CHECK(timeline.entries[0].at == Moment(1s));
  CHECK(timeline.entries[1].at == Moment(3s));
  CHECK(timeline.entries[2].at == Moment(2s));
}

TEST_CASE("ranges of ids are parsed, counted and shortened") {
  const auto ranges = selection::parse_id_ranges("{[51,54),[60,61)}");
  CHECK(ranges == std::vector<selection::IdRange>{{51, 54}, {60, 61}});
  CHECK(selection::parse_id_ranges("{}").empty());
  for (const auto* text :
       {"", "{", "{[1,4)", "{[1,4]}", "{[,4)}", "{[51,)}", "{[1,4)}x", "[1,4)", "{[1,4)[7,8)}", "{[1,4),}",
        "{,[1,4)}", "{[4,4)}", "{[4,1)}", "{[1,-9223372036854775808)}"})
    CHECK_THROWS_AS(selection::parse_id_ranges(text), std::invalid_argument);
  CHECK(selection::to_id_ranges({51, 52, 53, 60}) == ranges);
  CHECK(selection::multirange_text({7, 9}) == "{[7,8),[9,10)}");
  CHECK(selection::multirange_text({}) == "{}");
  CHECK(selection::count_ids(ranges) == 4);
  CHECK(selection::contains(ranges, 53));
  CHECK_FALSE(selection::contains(ranges, 54));
  CHECK(selection::id_ranges_text(ranges) == "51-53, 60");
  CHECK(selection::id_ranges_text({{1, 2}, {3, 4}, {5, 6}, {7, 8}, {9, 10}}) == "1, 3, 5, 7, 9");
  CHECK(selection::id_ranges_text({{1, 2}, {3, 4}, {5, 6}, {7, 8}, {9, 10}, {11, 20}}) == "1, 3, 5, … 11-19");
  CHECK(selection::id_ranges_text({}).empty());
}

TEST_CASE("a moment is formatted with milliseconds") {
  CHECK(precise_moment_text(Moment(1'795'253'415'007'999us)) == "2026-11-21T09:30:15.007Z");
  CHECK(precise_moment_text(Moment(1'795'253'415s)) == "2026-11-21T09:30:15.000Z");
}

}  // namespace mailroom::test::timeline_test
