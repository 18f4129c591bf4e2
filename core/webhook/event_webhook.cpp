// The headers tell who posts; whoever is not known learns no more than that.

#include "webhook/event_webhook.hpp"

#include <utility>

namespace mailroom::webhook {

process::HttpPage EventWebhook::answer(const process::HttpCall& call) noexcept {
  try {
    if (call.method != "POST") return {.status = 405, .text = "only POST is answered\n"};
    if (is_too_many()) return {.status = 429, .text = "too many requests\n"};
    return answer_post(call);
  } catch (const std::exception&) {
    return {.status = 500, .text = "the event was not recorded\n"};
  }
}

process::HttpPage EventWebhook::answer_post(const process::HttpCall& call) {
  if (!call.header("svix-id").empty()) return answer_resend(call);
  if (!call.header("x-amz-sns-message-type").empty()) return answer_sns(call);
  return refuse("it has no signature of a provider that is known");
}

process::HttpPage EventWebhook::answer_resend(const process::HttpCall& call) {
  const auto now = std::chrono::floor<std::chrono::seconds>(wall_now()).time_since_epoch().count();
  const auto problem = verifiers_.svix.problem_of(call, now);
  return problem.empty() ? record(call.body) : refuse(problem);
}

process::HttpPage EventWebhook::answer_sns(const process::HttpCall& call) {
  const auto message = parse_sns_message(call.body);
  if (!message) return refuse("it is no message of SNS");
  const auto verdict = verifiers_.sns.check(*message);
  if (verdict.is_unavailable) return {.status = 503, .text = "the signature cannot be checked now\n"};
  if (!verdict.problem.empty()) return refuse(verdict.problem);
  if (message->type == "SubscriptionConfirmation") return confirm(*message);
  if (message->type == "Notification") return record(message->content);
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

process::HttpPage EventWebhook::record(std::string_view event) {
  auto report = suppression::judge_event(event);
  if (!report.counts()) return {.text = "the event says nothing of an arrival\n"};
  switch (submit_(std::move(report))) {
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
  return {.status = 401, .text = "the signature is not valid\n"};
}

WebhookNews EventWebhook::take_news() {
  const std::lock_guard lock(mutex_);
  return std::exchange(news_, {});
}

bool EventWebhook::is_too_many() {
  const std::lock_guard lock(mutex_);
  const auto now = steady_now();
  if (now - second_ >= std::chrono::seconds(1)) {
    second_ = now;
    in_second_ = 0;
  }
  return ++in_second_ > most_a_second;
}

}  // namespace mailroom::webhook
