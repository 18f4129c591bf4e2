// The headers tell who posts; whoever is not known learns no more than that.

#include "webhook/event_webhook.hpp"

#include <utility>

#include "base/printable.hpp"

namespace mailroom::webhook {

namespace {

std::int64_t now_in_seconds() {
  return std::chrono::floor<std::chrono::seconds>(wall_now()).time_since_epoch().count();
}

}  // namespace

process::HttpPage EventWebhook::answer(const process::HttpCall& call) {
  if (call.method != "POST") return {.status = 405, .text = "only POST is answered\n"};
  if (is_too_many()) return {.status = 429, .text = "too many requests\n"};
  return answer_post(call);
}

process::HttpPage EventWebhook::answer_post(const process::HttpCall& call) {
  if (!call.header("svix-id").empty()) return answer_resend(call);
  if (!call.header("x-amz-sns-message-type").empty()) return answer_sns(call);
  if (!call.header(SendGridVerifier::signature_header).empty())
    return answer_signed(call, "sendgrid", verifiers_.sendgrid.problem_of(call, now_in_seconds()));
  if (const auto* const sender = verifiers_.secrets.sender_of(call))
    return record(bounce::read_events(call.body, *sender));
  if (has_mailgun_signature(call.body))
    return answer_signed(call, "mailgun", verifiers_.mailgun.problem_of(call.body, now_in_seconds()));
  return refuse("it has neither a signature nor a secret of a provider that is known");
}

process::HttpPage EventWebhook::answer_signed(const process::HttpCall& call, const char* provider,
                                              const std::string& problem) {
  return problem.empty() ? record(bounce::read_events(call.body, *bounce::find_provider(provider)))
                         : refuse(problem);
}

process::HttpPage EventWebhook::answer_resend(const process::HttpCall& call) {
  return answer_signed(call, "resend", verifiers_.svix.problem_of(call, now_in_seconds()));
}

process::HttpPage EventWebhook::answer_sns(const process::HttpCall& call) {
  const auto message = parse_sns_message(call.body);
  if (!message) return refuse("it is no message of SNS");
  const auto verdict = verifiers_.sns.check(*message);
  if (verdict.is_unavailable) return {.status = 503, .text = "the signature cannot be checked now\n"};
  if (!verdict.problem.empty()) return refuse(verdict.problem);
  if (message->type == "SubscriptionConfirmation") return confirm(*message);
  if (message->type == "Notification") {
    auto read = bounce::read_events(message->content, *bounce::find_provider("ses"));
    // A topic is also posted to by people, and by Amazon when it is set up.
    read.problem.clear();
    return record(std::move(read));
  }
  const std::lock_guard lock(mutex_);
  news_.unsubscribed.push_back(message->topic);
  return {.text = "noted\n"};
}

/// Amazon waits for somebody to visit the address: the topic posts then. It is visited only since SNS has
/// signed it, for a topic that is expected.
process::HttpPage EventWebhook::confirm(const SnsMessage& message) {
  if (!is_sns_confirmation_url(message.subscribe_url))
    return refuse("its subscription is not confirmed at an address of Amazon SNS");
  if (!verifiers_.web.get(message.subscribe_url))
    return {.status = 503, .text = "the subscription could not be confirmed\n"};
  const std::lock_guard lock(mutex_);
  news_.confirmed.push_back(message.topic);
  return {.text = "confirmed\n"};
}

process::HttpPage EventWebhook::record(bounce::ReadEvents read) {
  if (!read.problem.empty()) return refuse_body(read.problem);
  constexpr std::size_t most_told = 100;
  if (!read.unknown.empty()) {
    const std::lock_guard lock(mutex_);
    if (news_.unknown.size() < most_told) news_.unknown.insert(read.unknown.begin(), read.unknown.end());
  }
  if (read.events.empty()) return {.text = "the event says nothing of an arrival\n"};
  switch (submit_(std::move(read.events))) {
    case EventReceipt::recorded:
      return {.text = "recorded\n"};
    case EventReceipt::not_yet:
      return {.status = 503, .text = "the mail is not on record yet\n"};
    case EventReceipt::pending:
    case EventReceipt::failed:
      break;
  }
  return {.status = 503, .text = "the database is not available\n"};
}

process::HttpPage EventWebhook::refuse(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  ++news_.refused;
  news_.reason = reason;
  return {.status = 401, .text = "neither a signature nor a secret of it is valid\n"};
}

process::HttpPage EventWebhook::refuse_body(const std::string& problem) {
  const std::lock_guard lock(mutex_);
  ++news_.refused;
  news_.reason = problem;
  return {.status = 400, .text = shown_text(problem) + "\n"};
}

WebhookNews EventWebhook::take_news() {
  const std::lock_guard lock(mutex_);
  return std::exchange(news_, {});
}

bool EventWebhook::is_too_many() {
  const std::lock_guard lock(mutex_);
  return limit_.is_exceeded(steady_now());
}

}  // namespace mailroom::webhook
