// A message that Amazon SNS posts: what of it is signed, and which addresses of Amazon it may name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mailroom {

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

}  // namespace mailroom
