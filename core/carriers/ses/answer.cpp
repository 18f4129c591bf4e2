// The names of errors decide, and for three of them the words: SES has one name for several reasons.

#include "carriers/ses/answer.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <time.h>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "carriers/http/answer.hpp"

namespace mailroom::ses {
namespace {

/// SES gives no time until the quota of a day is free again: it counts the last 24 hours.
constexpr std::chrono::minutes ses_quota_wait{10};

/// The first of `keys` that has a text.
std::string text_of(const nlohmann::json& object, std::initializer_list<const char*> keys) {
  std::string text;
  for (const auto* key : keys)
    if (text.empty()) text = text_at(object, key);
  return text;
}

/// `MessageRejected` of `com.amazonaws.ses#MessageRejected:http://internal.example/`.
std::string bare_name(std::string_view name) {
  name = name.substr(0, name.find(':'));
  const auto hash = name.rfind('#');
  return std::string(trimmed(hash == std::string_view::npos ? name : name.substr(hash + 1)));
}

/// What is about the account, its settings or who asks, and not about this mail.
bool is_about_account(const SesError& error, int status) {
  return is_one_of(error.name,
                   {"LimitExceededException", "AccountSuspendedException", "SendingPausedException",
                    "MailFromDomainNotVerifiedException", "NotFoundException"}) ||
         is_about_login(error, status) || status == 404 || status / 100 == 3;
}

/// In the sandbox SES takes mails only for verified recipients, which says nothing of the others.
bool is_unverified(const SesError& error) {
  return error.name == "MessageRejected" && holds_in_any_case(error.message, "not verified");
}

delivery::Answer judge_limit(const SesError& error, const http::HttpOutcome& outcome, std::int64_t now) {
  delivery::Answer answer;
  answer.wait = http::parse_retry_after(outcome.response.header("retry-after"), now);
  if (holds_in_any_case(error.message, "daily message quota")) {
    answer.verdict = delivery::Verdict::unavailable;
    if (!answer.wait) answer.wait = ses_quota_wait;
    return answer;
  }
  answer.verdict = delivery::Verdict::deferred;
  answer.throttled = answer.waits_for_turn = true;
  return answer;
}

delivery::Answer judge_server_fault(const http::HttpOutcome& outcome, std::int64_t now) {
  delivery::Answer answer;
  // Without words it may come from a gateway that has lost the answer.
  answer.verdict =
      trimmed(outcome.response.body).empty() ? delivery::Verdict::unknown : delivery::Verdict::deferred;
  answer.wait = http::parse_retry_after(outcome.response.header("retry-after"), now);
  if (outcome.response.status == 503 && answer.wait) answer.throttled = answer.waits_for_turn = true;
  return answer;
}

delivery::Answer judge_error(const SesError& error, const http::HttpOutcome& outcome,
                             std::string_view recipient, std::int64_t now) {
  const auto status = outcome.response.status;
  if (is_throttle(error, status)) return judge_limit(error, outcome, now);
  if (status / 100 == 5) return judge_server_fault(outcome, now);
  delivery::Answer answer;
  answer.verdict = delivery::Verdict::rejected;
  if (is_about_account(error, status)) {
    answer.verdict = delivery::Verdict::unavailable;
    if (status == 400 || status == 403) answer.varies_with = delivery::VariesWith::sender;
  } else if (is_unverified(error)) {
    const bool is_recipient = holds_in_any_case(error.message, lower_case(recipient));
    answer.verdict = is_recipient ? delivery::Verdict::deferred : delivery::Verdict::unavailable;
    if (!is_recipient) answer.varies_with = delivery::VariesWith::sender;
  } else if (status == 408) {
    answer.verdict = delivery::Verdict::deferred;
  }
  if (answer.varies_with != delivery::VariesWith::nothing) answer.refusal = error.text(status);
  return answer;
}

std::string reply_of(const SesError& error, const http::HttpOutcome& outcome, std::int64_t now) {
  const auto status = outcome.response.status;
  if (status / 100 == 3) return http::redirection_words(outcome.response);
  return error.text(status) + (is_about_login(error, status) ? clock_words(outcome.response, now) : "");
}

}  // namespace

std::string SesError::text(int status) const {
  if (name.empty() && message.empty()) return fmt::format("status {}, without words", status);
  if (name.empty() || message.empty()) return name + message;
  return fmt::format("{}: {}", name, message);
}

SesError parse_ses_error(const http::HttpResponse& response) {
  const auto body = try_parse_json(response.body);
  SesError error;
  error.name = bare_name(response.header("x-amzn-errortype"));
  if (error.name.empty()) error.name = bare_name(text_of(body, {"__type", "code", "Code", "type"}));
  error.message = text_of(body, {"message", "Message"});
  if (error.name.empty() && error.message.empty()) error.message = trimmed(response.body);
  return error;
}

bool is_throttle(const SesError& error, int status) {
  return status == 429 || is_one_of(error.name, {"TooManyRequestsException", "ThrottlingException",
                                                 "Throttling", "RequestLimitExceeded", "SlowDown"});
}

bool is_about_login(const SesError& error, int status) {
  return status == 401 || status == 403 || status == 407 ||
         is_one_of(error.name, {"AccessDeniedException", "ExpiredTokenException", "ExpiredToken",
                                "IncompleteSignature", "IncompleteSignatureException", "InvalidClientTokenId",
                                "InvalidSignatureException", "MissingAuthenticationToken",
                                "MissingAuthenticationTokenException", "NotAuthorized", "OptInRequired",
                                "RequestExpired", "SignatureDoesNotMatch", "UnrecognizedClientException"});
}

std::optional<std::chrono::seconds> clock_lead(const http::HttpResponse& response, std::int64_t now) {
  const std::string date(response.header("date"));
  std::tm parts{};
  const char* const end = strptime(date.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return std::chrono::seconds(now - timegm(&parts));
}

std::string clock_words(const http::HttpResponse& response, std::int64_t now) {
  const auto lead = clock_lead(response, now);
  if (!lead || std::chrono::abs(*lead) < std::chrono::minutes(1)) return {};
  return fmt::format("; the clock of this host is {} {} the server's",
                     format_duration(std::chrono::abs(*lead)), lead->count() > 0 ? "ahead of" : "behind");
}

delivery::Answer judge_ses(const http::HttpOutcome& outcome, std::string_view recipient, std::int64_t now) {
  const auto& response = outcome.response;
  delivery::Answer answer;
  if (outcome.end == http::HttpEnd::unsent) {
    answer.verdict = delivery::Verdict::unavailable;
    answer.reply = outcome.failure;
    return answer;
  }
  const bool is_success = response.status / 100 == 2;
  answer.code = response.status;
  answer.verdict = delivery::Verdict::unknown;
  if (response.status == 0 || (outcome.end == http::HttpEnd::cut_off && is_success)) {
    answer.reply = outcome.failure;
    return answer;
  }
  if (is_success) {
    answer.reply = text_of(try_parse_json(response.body), {"MessageId"});
    if (!answer.reply.empty()) answer.verdict = delivery::Verdict::accepted;
    if (answer.reply.empty()) answer.reply = "the answer has no MessageId";
    return answer;
  }
  if (outcome.end == http::HttpEnd::cut_off) {
    // It was not taken, and the reason was lost.
    answer.verdict = delivery::Verdict::deferred;
    answer.reply = outcome.failure;
    return answer;
  }
  const auto error = parse_ses_error(response);
  answer = judge_error(error, outcome, recipient, now);
  answer.code = response.status;
  answer.reply = reply_of(error, outcome, now);
  return answer;
}

}  // namespace mailroom::ses
