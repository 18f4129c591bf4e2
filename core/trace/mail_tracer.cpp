// Each step is a span of its own: of the first attempt they are children of the application's span, of a
// later one the attempt is the root, and its rendering a child.

#include "trace/mail_tracer.hpp"

#include <algorithm>
#include <utility>

namespace mailroom::trace {
namespace {

/// Of batches that were claimed, and are not done.
constexpr std::size_t most_claims = 16;

}  // namespace

void MailTracer::claimed(const std::string& queue, std::int64_t batch, int tokens, SpanTime ended,
                         std::chrono::nanoseconds took) {
  // A batch whose session was lost never comes to its end.
  if (claims_.size() >= most_claims) claims_.erase(claims_.begin());
  claims_[batch] = Span{.kind = SpanKind::client,
                        .operation = "claim",
                        .operation_type = "receive",
                        .start = ended - took,
                        .end = ended,
                        .queue = queue,
                        .batch = batch,
                        .batch_count = tokens};
}

std::shared_ptr<TokenTrace> MailTracer::trace(TracedToken token, SpanTime now) {
  auto trace = std::make_shared<TokenTrace>();
  trace->origin = parse_traceparent(token.traceparent);
  token.traceparent = {};
  trace->token = std::move(token);
  const auto& known = trace->token;
  trace->begins_here = !trace->origin && !known.was_tried;
  if (trace->begins_here) trace->origin = sampler_.root();
  trace->attempt =
      sampler_.place({.origin = trace->origin, .is_first = !known.was_tried, .age = now - known.asked_at});
  return trace;
}

void MailTracer::link_claim(const SpanPlace& place, std::int64_t batch) {
  const auto claim = claims_.find(batch);
  if (claim == claims_.end()) return;
  const SpanLink link{place.trace, place.parent.value_or(place.id)};
  auto& span = claim->second;
  // Those of a message follow each other.
  if (!span.links.empty() && span.links.back() == link) return;
  if (span.links.size() < Span::most_links) {
    span.links.push_back(link);
  } else {
    ++span.dropped_links;
  }
}

Span MailTracer::span_of(const TokenTrace& trace, const char* operation, const char* type,
                         SpanKind kind) const {
  const auto& token = trace.token;
  const auto& place = trace.attempt;
  Span span{.trace = place.trace,
            .id = place.id,
            .parent = place.parent,
            .kind = kind,
            .operation = operation,
            .operation_type = type,
            .queue = token.queue,
            .action = token.action,
            .token = token.token,
            .message = token.message};
  return span;
}

void MailTracer::say_asked(const TokenTrace& trace) {
  const auto& origin = *trace.origin;
  auto span = span_of(trace, "enqueue", "send", SpanKind::producer);
  span.trace = origin.trace;
  span.id = trace.begins_here ? origin.span : enqueued_id(origin, trace.token.token);
  span.parent = trace.begins_here ? std::nullopt : std::optional(origin.span);
  span.start = trace.token.asked_at;
  span.end = span.start;
  buffer_.add(std::move(span));
}

void MailTracer::rendered(const TokenTrace& trace, std::int64_t batch, SpanTime started, SpanTime ended,
                          bool has_failed) {
  if (!trace.token.was_tried && trace.origin->is_sampled) say_asked(trace);
  const auto& place = trace.attempt;
  if (!place.is_recorded) return;
  link_claim(place, batch);
  auto span = span_of(trace, "render", "", SpanKind::internal);
  span.start = started;
  span.end = ended;
  span.has_failed = has_failed;
  if (has_failed) span.outcome = "rejected";
  if (place.parent) {
    span.id = sampler_.next_id();
  } else if (has_failed) {
    // No attempt follows, which would be the root.
    if (place.link) span.links.push_back(*place.link);
  } else {
    span.id = sampler_.next_id();
    span.parent = place.id;
  }
  buffer_.add(std::move(span));
}

std::optional<TraceId> MailTracer::carried(TokenTrace& trace, const CarriedToken& carried) {
  auto& place = trace.attempt;
  std::optional<TraceId> recorded;
  if (place.is_recorded) {
    recorded = place.trace;
    auto span = span_of(trace, "carry", "process", SpanKind::consumer);
    span.start = carried.ended - carried.took;
    span.end = carried.ended;
    span.outcome = carried.outcome;
    span.has_failed = carried.has_failed;
    span.code = carried.code;
    span.sink = carried.sink;
    if (place.link) span.links.push_back(*place.link);
    buffer_.add(std::move(span));
  }
  trace.token.was_tried = true;
  place = sampler_.place(
      {.origin = trace.origin, .is_first = false, .age = carried.ended - trace.token.asked_at});
  return recorded;
}

void MailTracer::finished(std::int64_t batch) {
  auto claim = claims_.extract(batch);
  if (claim.empty() || claim.mapped().links.empty()) return;
  auto& span = claim.mapped();
  const auto root = sampler_.root();
  span.trace = root.trace;
  span.id = root.span;
  buffer_.add(std::move(span));
}

void MailTracer::came_back(const TracedToken& token, const LaterEvent& event) {
  TokenTrace trace{.token = token};
  trace.token.traceparent = {};
  trace.origin = parse_traceparent(token.traceparent);
  if (!trace.origin) return;
  trace.attempt = sampler_.place({.origin = trace.origin, .age = event.at - token.asked_at});
  if (!trace.attempt.is_recorded) return;
  auto span = span_of(trace, event.operation, "process", SpanKind::consumer);
  span.start = event.at;
  span.end = event.at;
  span.outcome = event.outcome;
  span.has_failed = event.has_failed;
  if (trace.attempt.link) span.links.push_back(*trace.attempt.link);
  buffer_.add(std::move(span));
}

}  // namespace mailroom::trace
