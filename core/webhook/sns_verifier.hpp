// A message that Amazon SNS posts, and who posted it, by its signature and the topic.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"

namespace mailroom::webhook {

struct SnsMessage {
  std::string type{};  ///< `Notification`, `SubscriptionConfirmation` or `UnsubscribeConfirmation`
  std::string topic{};
  std::string content{};            ///< what the topic was sent
  std::string signed_text{};        ///< what the signature is over
  std::string signature{};          ///< in base64
  std::string signature_version{};  ///< `1` or `2`
  std::string certificate_url{};
  std::string subscribe_url{};  ///< of a SubscriptionConfirmation
};

/// nullopt for what is none, or lacks what its type must have.
std::optional<SnsMessage> parse_sns_message(std::string_view body);

/// True for the URL of a certificate of SNS, on a host of Amazon that is named so:
/// https://sns.REGION.amazonaws.com/SimpleNotificationService-….pem
bool is_sns_certificate_url(const std::string& url);

/// True for a URL that confirms a subscription, on such a host.
bool is_sns_confirmation_url(const std::string& url);

/// Asks hosts of Amazon.
class SnsWeb {
 public:
  virtual ~SnsWeb() = default;
  /// The body of a 200; nullopt for anything else.
  virtual std::optional<std::string> get(const std::string& url) = 0;
};

/// By libcurl: over TLS with the certificates of the system, without proxies and redirects.
class CurlSnsWeb final : public SnsWeb {
 public:
  std::optional<std::string> get(const std::string& url) override;
};

/// What a check has found.
struct SnsVerdict {
  std::string problem{};        ///< why the message is not known to be of the topic; empty if it is
  bool is_unavailable = false;  ///< its certificate could not be fetched: it may be tried again
};

/// Checks messages of topics. For several threads.
class SnsVerifier {
 public:
  /// Certificates that are kept: Amazon has one for each region at a time.
  static constexpr std::size_t most_kept = 16;
  /// After a certificate could not be fetched, none is for this long.
  static constexpr std::chrono::seconds pause{5};

  /// `topics`: the ARNs of those that may post. `web` must outlive this.
  SnsVerifier(std::vector<std::string> topics, SnsWeb& web) : topics_(std::move(topics)), web_(web) {}

  SnsVerdict check(const SnsMessage& message);

 private:
  std::optional<std::string> certificate_at(const std::string& url);

  std::vector<std::string> topics_;
  SnsWeb& web_;
  std::mutex mutex_;
  std::map<std::string, std::string> kept_;
  std::optional<TimePoint> failed_at_;
};

}  // namespace mailroom::webhook
