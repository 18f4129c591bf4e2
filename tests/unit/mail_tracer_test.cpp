// The spans of a mail from the statement that asked for it to its answers, and the buffer in which they wait.

#include "trace/mail_tracer.hpp"

#include <algorithm>
#include <thread>

#include "support/catch.hpp"

namespace mailroom::test::mail_tracer_test {
namespace {

using namespace std::chrono_literals;

const std::string traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const auto origin = *trace::parse_traceparent(traceparent);
constexpr trace::SpanTime start{1'800'000'000s};

std::vector<trace::Span> take(trace::SpanBuffer& buffer, std::size_t most) {
  std::vector<trace::Span> taken(3);
  buffer.take(most, taken);
  return taken;
}

struct Traced {
  trace::SpanBuffer buffer;
  trace::MailTracer tracer;
  explicit Traced(double share = 1, std::size_t capacity = 1000)
      : buffer(capacity), tracer(share, 1, buffer) {}

  std::shared_ptr<trace::TokenTrace> begin(std::int64_t token, const std::string& parent,
                                           bool was_tried = false, std::chrono::seconds after = 1s) {
    const auto trace = tracer.trace({.traceparent = parent,
                                     .queue = "mailroom",
                                     .action = "message",
                                     .token = token,
                                     .message = 70 + token,
                                     .asked_at = start,
                                     .was_tried = was_tried},
                                    start + after);
    tracer.rendered(*trace, 5, start + after, start + after + 1ms, false);
    return trace;
  }
  std::optional<trace::TraceId> carry(trace::TokenTrace& trace, const std::string& outcome,
                                      std::chrono::seconds after = 2s) {
    return tracer.carried(trace, {.outcome = outcome,
                                  .has_failed = outcome != "accepted",
                                  .code = outcome == "accepted" ? 250 : 451,
                                  .sink = "relay.example:25",
                                  .ended = start + after,
                                  .took = 30ms});
  }
  /// Those since the last call.
  std::vector<trace::Span> spans() { return take(buffer, 10'000); }
};

const trace::Span& find(const std::vector<trace::Span>& spans, std::string_view operation) {
  const auto found = std::ranges::find(spans, operation, &trace::Span::operation);
  REQUIRE(found != spans.end());
  return *found;
}

}  // namespace

TEST_CASE("the first attempt joins the trace of the application, and the claim is linked to it") {
  Traced traced;
  traced.tracer.claimed("mailroom", 5, 2, start + 1s, 4ms);
  const auto trace = traced.begin(1, traceparent);
  CHECK(traced.carry(*trace, "accepted") == origin.trace);
  traced.tracer.finished(5);
  const auto spans = traced.spans();
  REQUIRE(spans.size() == 4);
  for (const auto* operation : {"enqueue", "render", "carry"}) {
    const auto& span = find(spans, operation);
    CAPTURE(operation);
    CHECK(span.trace == origin.trace);
    CHECK(span.parent == origin.span);
    CHECK(span.links.empty());
    CHECK(span.token == 1);
    CHECK(span.message == 71);
  }
  CHECK(find(spans, "enqueue").start == start);
  CHECK(find(spans, "enqueue").end == start);
  CHECK(find(spans, "carry").start == start + 2s - 30ms);
  CHECK(find(spans, "carry").outcome == "accepted");
  CHECK_FALSE(find(spans, "carry").has_failed);
  const auto& claim = find(spans, "claim");
  CHECK(claim.trace != origin.trace);
  CHECK_FALSE(claim.parent);
  CHECK(claim.batch_count == 2);
  CHECK(claim.links == std::vector{trace::SpanLink{origin.trace, origin.span}});
}

TEST_CASE("an attempt after another is a root with a link, in the same batch and in a later one") {
  Traced traced;
  const auto first = traced.begin(1, traceparent);
  traced.carry(*first, "deferred");
  traced.spans();
  traced.carry(*first, "accepted", 3s);
  const auto again = traced.spans();
  REQUIRE(again.size() == 1);
  CHECK(again[0].trace != origin.trace);
  CHECK_FALSE(again[0].parent);
  CHECK(again[0].links == std::vector{trace::SpanLink{origin.trace, origin.span}});
  const auto later = traced.begin(1, traceparent, true);
  const auto rendered = traced.spans();
  REQUIRE(rendered.size() == 1);
  const auto id = traced.carry(*later, "accepted");
  const auto carried = traced.spans();
  REQUIRE(carried.size() == 1);
  CHECK(carried[0].trace == id);
  CHECK(rendered[0].trace == carried[0].trace);
  CHECK(rendered[0].parent == carried[0].id);
  CHECK(carried[0].links == std::vector{trace::SpanLink{origin.trace, origin.span}});
}

TEST_CASE("what is sent long after is a root with a link, and the span of the statement stays where it was") {
  Traced traced;
  const auto trace = traced.begin(1, traceparent, false, 3600s);
  traced.carry(*trace, "accepted", 3601s);
  const auto spans = traced.spans();
  CHECK(find(spans, "enqueue").trace == origin.trace);
  CHECK(find(spans, "enqueue").parent == origin.span);
  CHECK(find(spans, "carry").trace != origin.trace);
  CHECK(find(spans, "carry").links == std::vector{trace::SpanLink{origin.trace, origin.span}});
}

TEST_CASE("what is not recorded makes no span and no link, and its claim none either") {
  auto unsampled = traceparent;
  unsampled.back() = '0';
  Traced traced(0);
  traced.tracer.claimed("mailroom", 5, 2, start, 1ms);
  for (const auto& parent : {unsampled, std::string(), std::string("nonsense")}) {
    const auto trace = traced.begin(1, parent);
    CHECK_FALSE(traced.carry(*trace, "deferred"));
    CHECK_FALSE(traced.carry(*trace, "accepted"));
  }
  traced.tracer.finished(5);
  CHECK(traced.spans().empty());
}

TEST_CASE("a mail without a trace begins one, with the span of its statement as root") {
  Traced traced;
  const auto trace = traced.begin(1, "");
  traced.carry(*trace, "accepted");
  const auto spans = traced.spans();
  const auto& asked = find(spans, "enqueue");
  CHECK_FALSE(asked.parent);
  CHECK(find(spans, "render").parent == asked.id);
  CHECK(find(spans, "carry").parent == asked.id);
  CHECK(find(spans, "carry").trace == asked.trace);
}

TEST_CASE("a template that fails is the end of its trace") {
  Traced traced;
  for (const bool was_tried : {false, true}) {
    const auto trace = traced.tracer.trace(
        {.traceparent = traceparent, .queue = "q", .token = 1, .asked_at = start, .was_tried = was_tried},
        start);
    traced.tracer.rendered(*trace, 5, start, start + 1ms, true);
    const auto spans = traced.spans();
    const auto& render = find(spans, "render");
    CHECK(render.has_failed);
    CHECK(render.outcome == "rejected");
    CHECK(render.parent.has_value() != was_tried);
    CHECK(render.links.size() == (was_tried ? 1 : 0));
  }
}

TEST_CASE("what comes back is in the trace of its mail, or linked to it if it comes late") {
  Traced traced;
  for (const auto after : {20s, 7200s}) {
    traced.tracer.came_back(
        {.traceparent = traceparent, .queue = "mailroom", .token = 1, .asked_at = start},
        {.operation = "bounce", .outcome = "hard", .has_failed = true, .at = start + after});
    const auto spans = traced.spans();
    REQUIRE(spans.size() == 1);
    CHECK((spans[0].trace == origin.trace) == (after == 20s));
    CHECK(spans[0].links.size() == (after == 20s ? 0 : 1));
    CHECK(spans[0].outcome == "hard");
  }
  traced.tracer.came_back({.traceparent = "", .token = 1, .asked_at = start},
                          {.operation = "bounce", .at = start});
  CHECK(traced.spans().empty());
}

TEST_CASE("a claim has at most 128 links and counts the others, and the tokens of a message share one") {
  Traced traced;
  traced.tracer.claimed("mailroom", 5, 300, start, 1ms);
  for (int i = 0; i < 200; ++i)
    traced.begin(i + 1, "");
  for (int i = 0; i < 5; ++i)
    traced.begin(i + 300, traceparent);
  traced.tracer.finished(5);
  const auto spans = traced.spans();
  CHECK(find(spans, "claim").links.size() == 128);
  CHECK(find(spans, "claim").dropped_links == 200 - 128 + 5);
  traced.tracer.claimed("mailroom", 6, 2, start, 1ms);
  traced.tracer.finished(6);
  CHECK(traced.spans().empty());
}

TEST_CASE("a full buffer drops spans, counts them, and holds up nobody") {
  Traced traced(1, 10);
  for (int i = 0; i < 25; ++i)
    traced.buffer.add(trace::Span{.token = i});
  CHECK(traced.buffer.counts().dropped == 15);
  const auto kept = traced.spans();
  REQUIRE(kept.size() == 10);
  CHECK(kept.front().token == 0);
  CHECK(kept.back().token == 9);
  traced.buffer.add(trace::Span{});
  CHECK(traced.spans().size() == 1);
  CHECK(traced.buffer.counts().dropped == 15);
}

TEST_CASE("the thread that sends is woken by enough spans, and by the end") {
  trace::SpanBuffer buffer;
  const auto far = steady_now() + 60s;
  std::thread waiting([&] { buffer.wait(3, far, [] { return false; }); });
  for (int i = 0; i < 3; ++i)
    buffer.add(trace::Span{});
  waiting.join();
  CHECK(take(buffer, 2).size() == 2);
  CHECK(take(buffer, 2).size() == 1);
  std::atomic<bool> is_over = false;
  std::thread ending([&] { buffer.wait(3, far, [&] { return is_over.load(); }); });
  is_over = true;
  buffer.wake();
  ending.join();
  CHECK(steady_now() < far);
}

}  // namespace mailroom::test::mail_tracer_test
