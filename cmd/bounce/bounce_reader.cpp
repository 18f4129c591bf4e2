// What one transaction takes is counted when it is committed.

#include "cmd/bounce/bounce_reader.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace mailroom::cmd {

bool needs_a_look(const suppression::RecordedBounce& bounce) {
  return bounce.kind == "unread" || !bounce.token;
}

std::size_t rows_of(const suppression::Report& report) {
  return report.counts() ? std::max<std::size_t>(report.bounce->recipients.size(), 1) : 0;
}

namespace {

/// Says what came back, in the trace of its mail. What was read before has been said.
void trace(const suppression::RecordedBounce& bounce, trace::MailTracer& tracer) {
  if (!bounce.is_new || bounce.traceparent.empty() || !bounce.token) return;
  const bool has_failed = bounce.kind != "delivered" &&
                          bounce.kind != bounce::bounce_kind_name(bounce::BounceKind::auto_reply) &&
                          bounce.kind != bounce::bounce_kind_name(bounce::BounceKind::unsubscribed) &&
                          bounce.kind != bounce::bounce_kind_name(bounce::BounceKind::delayed);
  const char* const operation = bounce.kind == "delivered"      ? "delivery"
                                : bounce.kind == "complaint"    ? "complaint"
                                : bounce.kind == "delayed"      ? "delay"
                                : bounce.kind == "unsubscribed" ? "unsubscription"
                                : has_failed                    ? "bounce"
                                                                : "reply";
  tracer.came_back(
      {.traceparent = bounce.traceparent,
       .queue = bounce.queue,
       .token = *bounce.token,
       .message = bounce.message,
       .asked_at = trace::SpanTime(std::chrono::seconds(bounce.created_at))},
      {.operation = operation, .outcome = bounce.kind, .has_failed = has_failed, .at = trace::span_now()});
}

}  // namespace

BounceReader::BounceReader(db::Connection& connection, Context& context, trace::MailTracer* tracer)
    : connection_(connection),
      context_(context),
      tracer_(tracer),
      proof_{.pattern = context.settings().send.bounce_address,
             .mailto = context.settings().send.unsubscribe_mailto,
             .home = suppression::home_name(connection),
             .keys = signing::load_key_ring(context.settings())} {}

std::vector<suppression::Report> BounceReader::judge(const std::vector<bounce::ReadEvent>& events) {
  std::vector<suppression::Report> reports;
  for (const auto& event : events)
    reports.push_back(suppression::judge_event(event, proof_));
  return reports;
}

std::vector<suppression::RecordedBounce> BounceReader::record(
    const std::string& source, const std::vector<suppression::Report>& reports) {
  auto recorded =
      suppression::record_bounces(connection_, source, reports, context_.settings().bounce.suppress_after);
  for (const auto& report : reports)
    ++(report.counts() ? count_.reports : count_.others);
  for (const auto& bounce : recorded) {
    count_.add(bounce);
    if (tracer_ != nullptr) trace(bounce, *tracer_);
  }
  return recorded;
}

std::vector<suppression::TopicChoice> BounceReader::change(const suppression::PreferenceChange& change) {
  auto choices = suppression::change_preferences(connection_, change);
  if (change.changes() && !choices.empty()) ++count_.choices;
  return choices;
}

void BounceReader::tell_count() {
  const auto count = std::exchange(count_, {});
  if (count.choices > 0) context_.log().info("changed what readers get", {{"requests", count.choices}});
  if (count.reports + count.others == 0) return;
  context_.log().info("read reports", {{"reports", count.reports},
                                       {"hard", count.hard},
                                       {"suppressed", count.suppressed},
                                       {"unmatched", count.unmatched},
                                       {"unread", count.unread},
                                       {"known", count.known},
                                       {"others", count.others}});
}

}  // namespace mailroom::cmd
