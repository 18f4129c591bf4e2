// Which trace a span belongs to, and whether it is recorded.

#include "trace/span_place.hpp"

#include <set>

#include "support/catch.hpp"

namespace mailroom::test::span_place_test {
namespace {

const auto sampled = *trace::parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
const auto unsampled = *trace::parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00");

}  // namespace

TEST_CASE(
    "the first attempt is a child of the application's span, later ones and late ones are roots with a link") {
  using std::chrono::minutes;
  struct Row {
    bool is_first;
    minutes age;
    bool is_child;
  };
  for (const auto& row :
       {Row{true, minutes(0), true}, Row{true, minutes(10), true}, Row{true, minutes(-5), true},
        Row{true, minutes(11), false}, Row{true, minutes(60 * 24), false}, Row{false, minutes(0), false},
        Row{false, minutes(11), false}}) {
    CAPTURE(row.is_first, row.age.count());
    trace::SpanSampler sampler(1, 1);
    const auto place = sampler.place({.origin = sampled, .is_first = row.is_first, .age = row.age});
    CHECK((place.trace == sampled.trace) == row.is_child);
    CHECK(place.parent.has_value() == row.is_child);
    if (row.is_child) CHECK(*place.parent == sampled.span);
    CHECK(place.link.has_value() != row.is_child);
    if (!row.is_child) CHECK(*place.link == trace::SpanLink{sampled.trace, sampled.span});
    CHECK(place.id != sampled.span);
    CHECK(place.is_recorded);
  }
}

TEST_CASE("a child is recorded if its parent is, a root by the configured share") {
  for (const double share : {0.0, 0.3, 1.0}) {
    trace::SpanSampler sampler(share, 5);
    int roots = 0;
    int retries = 0;
    constexpr int tries = 10'000;
    for (int i = 0; i < tries; ++i) {
      CHECK(sampler.place({.origin = sampled}).is_recorded);
      CHECK_FALSE(sampler.place({.origin = unsampled}).is_recorded);
      roots += sampler.place({}).is_recorded ? 1 : 0;
      // Whether the first attempt was recorded says nothing of this.
      retries += sampler.place({.origin = unsampled, .is_first = false}).is_recorded ? 1 : 0;
    }
    CAPTURE(share, roots, retries);
    CHECK(std::abs(roots - share * tries) < 200);
    CHECK(std::abs(retries - share * tries) < 200);
  }
}

TEST_CASE("a token without an application's span begins a trace without a link") {
  trace::SpanSampler sampler(1, 3);
  const auto place = sampler.place({.is_first = false});
  CHECK_FALSE(place.parent);
  CHECK_FALSE(place.link);
  CHECK(place.trace != trace::TraceId{});
}

TEST_CASE("ids differ, but for the span that says when a mail was asked for") {
  trace::SpanSampler sampler(1, 9);
  std::set<trace::SpanId> ids;
  for (int i = 0; i < 10'000; ++i)
    ids.insert(sampler.next_id());
  CHECK(ids.size() == 10'000);
  CHECK_FALSE(ids.contains(trace::SpanId{}));
  CHECK(trace::enqueued_id(sampled, 1) == trace::enqueued_id(sampled, 1));
  CHECK(trace::enqueued_id(sampled, 1) != trace::enqueued_id(sampled, 2));
  CHECK(trace::enqueued_id(sampled, 1) != sampled.span);
  auto other = sampled;
  other.span[0] ^= 1;
  CHECK(trace::enqueued_id(sampled, 1) != trace::enqueued_id(other, 1));
}

}  // namespace mailroom::test::span_place_test
