// The members that are signed, in the order of their names; hosts are compared as a whole.

#include "webhook/sns_message.hpp"

#include <array>
#include <nlohmann/json.hpp>
#include <regex>

namespace mailroom {
namespace {

using Json = nlohmann::json;

constexpr std::array notification_members{"Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"};
constexpr std::array confirmation_members{"Message", "MessageId", "SubscribeURL", "Timestamp",
                                          "Token",   "TopicArn",  "Type"};

std::string sns_text(const Json& message, const char* key) {
  const auto found = message.find(key);
  return found != message.end() && found->is_string() ? found->get<std::string>() : std::string();
}

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
bool fits(const std::string& url, const std::regex& form) {
  constexpr std::size_t longest = 2000;
  return url.size() <= longest && std::regex_match(url, form);
}

}  // namespace

std::optional<SnsMessage> parse_sns_message(std::string_view body) {
  const auto json = Json::parse(body, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  SnsMessage message{.type = sns_text(json, "Type"),
                     .topic = sns_text(json, "TopicArn"),
                     .content = sns_text(json, "Message"),
                     .signature = sns_text(json, "Signature"),
                     .signature_version = sns_text(json, "SignatureVersion"),
                     .certificate_url = sns_text(json, "SigningCertURL"),
                     .subscribe_url = sns_text(json, "SubscribeURL")};
  if (message.type == "Notification") {
    message.signed_text = text_to_sign(json, notification_members);
  } else if (message.type == "SubscriptionConfirmation" || message.type == "UnsubscribeConfirmation") {
    message.signed_text = text_to_sign(json, confirmation_members);
  }
  if (message.signed_text.empty() || message.signature.empty()) return std::nullopt;
  return message;
}

bool is_sns_certificate_url(const std::string& url) {
  static const std::regex form(
      R"(https://sns\.[a-z0-9-]{3,40}\.amazonaws\.com(\.cn)?/SimpleNotificationService-[A-Za-z0-9]{1,100}\.pem)");
  return fits(url, form);
}

bool is_sns_confirmation_url(const std::string& url) {
  static const std::regex form(
      R"(https://sns\.[a-z0-9-]{3,40}\.amazonaws\.com(\.cn)?/\?Action=ConfirmSubscription&[A-Za-z0-9=&:%._~+-]*)");
  return fits(url, form);
}

}  // namespace mailroom
