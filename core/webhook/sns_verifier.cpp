// A certificate of Amazon's tells that SNS has signed, and the topic for whom: every customer's topics are
// signed by the same key. The members that are signed are in the order of their names; hosts are compared as
// a whole.

#include "webhook/sns_verifier.hpp"

#include <algorithm>
#include <array>

#include "base/json.hpp"
#include "base/pattern.hpp"
#include "carriers/http/exchange.hpp"
#include "crypto/base64.hpp"
#include "crypto/certificate.hpp"

namespace mailroom::webhook {
namespace {

using Json = nlohmann::json;

constexpr std::array notification_members{"Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"};
constexpr std::array confirmation_members{"Message", "MessageId", "SubscribeURL", "Timestamp",
                                          "Token",   "TopicArn",  "Type"};

/// Empty if a member is missing. Only the subject may be.
template <typename Members>
std::string text_to_sign(const Json& message, const Members& members) {
  std::string text;
  for (const std::string key : members) {
    const bool is_there = message.contains(key) && message[key].is_string();
    if (!is_there && key == "Subject") continue;
    if (!is_there) return {};
    text += key + "\n" + message[key].get<std::string>() + "\n";
  }
  return text;
}

/// A URL that is long is none; the library for expressions recurses over the text.
bool fits(const std::string& url, const Pattern& form) {
  constexpr std::size_t longest = 2000;
  return url.size() <= longest && form.matches(url);
}

}  // namespace

std::optional<SnsMessage> parse_sns_message(std::string_view body) {
  const auto json = try_parse_json(body);
  if (!json.is_object()) return std::nullopt;
  SnsMessage message{.type = text_at(json, "Type"),
                     .topic = text_at(json, "TopicArn"),
                     .content = text_at(json, "Message"),
                     .signature = text_at(json, "Signature"),
                     .signature_version = text_at(json, "SignatureVersion"),
                     .certificate_url = text_at(json, "SigningCertURL"),
                     .subscribe_url = text_at(json, "SubscribeURL")};
  if (message.type == "Notification") {
    message.signed_text = text_to_sign(json, notification_members);
  } else if (message.type == "SubscriptionConfirmation" || message.type == "UnsubscribeConfirmation") {
    message.signed_text = text_to_sign(json, confirmation_members);
  }
  if (message.signed_text.empty() || message.signature.empty()) return std::nullopt;
  return message;
}

bool is_sns_certificate_url(const std::string& url) {
  static const Pattern form(
      R"(https://sns\.[a-z0-9-]{3,40}\.amazonaws\.com(\.cn)?/SimpleNotificationService-[A-Za-z0-9]{1,100}\.pem)");
  return fits(url, form);
}

bool is_sns_confirmation_url(const std::string& url) {
  static const Pattern form(
      R"(https://sns\.[a-z0-9-]{3,40}\.amazonaws\.com(\.cn)?/\?Action=ConfirmSubscription&[A-Za-z0-9=&:%._~+-]*)");
  return fits(url, form);
}

std::optional<std::string> CurlSnsWeb::get(const std::string& url) {
  auto endpoint = http::parse_http_url(url, "a message of SNS", "SNS names no user");
  endpoint.timeout = std::chrono::seconds(4);
  auto outcome = http::HttpExchange(endpoint).perform({.method = "GET"});
  if (outcome.end != http::HttpEnd::answered || outcome.response.status != 200) return std::nullopt;
  return std::move(outcome.response.body);
}

SnsVerdict SnsVerifier::check(const SnsMessage& message) {
  if (topics_.empty()) return {"bounce.sns_topics names no topic"};
  if (std::ranges::find(topics_, message.topic) == topics_.end())
    return {"bounce.sns_topics does not name its topic"};
  if (message.signature_version != "1" && message.signature_version != "2")
    return {"its signature has another version than 1 and 2"};
  if (!is_sns_certificate_url(message.certificate_url))
    return {"its certificate is not at an address of Amazon SNS"};
  const auto signature = crypto::decoded_base64(message.signature);
  if (!signature) return {"its signature is malformed"};
  const auto certificate = certificate_at(message.certificate_url);
  if (!certificate) return {"the certificate of Amazon SNS could not be fetched", true};
  const auto digest =
      message.signature_version == "1" ? crypto::SignedDigest::sha1 : crypto::SignedDigest::sha256;
  if (!crypto::is_signed_by_certificate(*certificate, message.signed_text, *signature, digest))
    return {"the certificate of Amazon SNS has not signed it"};
  return {};
}

std::optional<std::string> SnsVerifier::certificate_at(const std::string& url) {
  const std::lock_guard lock(mutex_);
  if (const auto found = kept_.find(url); found != kept_.end()) return found->second;
  const auto now = steady_now();
  if (failed_at_ && now < *failed_at_ + pause) return std::nullopt;
  auto certificate = web_.get(url);
  if (!certificate) {
    failed_at_ = now;
    return std::nullopt;
  }
  if (kept_.size() >= most_kept) kept_.clear();
  return kept_[url] = std::move(*certificate);
}

}  // namespace mailroom::webhook
