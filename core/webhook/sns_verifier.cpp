// A certificate of Amazon's tells that SNS has signed, and the topic for whom: every customer's topics are
// signed by the same key.

#include "webhook/sns_verifier.hpp"

#include <algorithm>

#include "carriers/http/exchange.hpp"
#include "crypto/base64.hpp"
#include "crypto/certificate.hpp"

namespace mailroom {

std::optional<std::string> CurlSnsWeb::get(const std::string& url) {
  auto endpoint = parse_http_url(url, "a message of SNS", "SNS names no user");
  endpoint.timeout = std::chrono::seconds(4);
  auto outcome = HttpExchange(endpoint).perform({.method = "GET"});
  if (outcome.end != HttpEnd::answered || outcome.response.status != 200) return std::nullopt;
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
  const auto signature = decoded_base64(message.signature);
  if (!signature) return {"its signature is malformed"};
  const auto certificate = certificate_at(message.certificate_url);
  if (!certificate) return {"the certificate of Amazon SNS could not be fetched", true};
  const auto digest = message.signature_version == "1" ? SignedDigest::sha1 : SignedDigest::sha256;
  if (!is_signed_by_certificate(*certificate, message.signed_text, *signature, digest))
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

}  // namespace mailroom
