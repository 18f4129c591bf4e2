// Messages of Amazon SNS: who may post them, and which addresses of theirs are visited.

#include <fmt/format.h>
#include <map>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "base/json.hpp"
#include "crypto/base64.hpp"
#include "crypto/certificate.hpp"
#include "support/catch.hpp"
#include "webhook/event_webhook.hpp"

namespace mailroom::test::sns_test {
namespace {

using Json = nlohmann::json;

const std::string topic = "arn:aws:sns:eu-west-1:123456789012:ses-events";
const std::string certificate_url =
    "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0123456789abcdef0123456789abcdef.pem";
const std::string confirmation_url =
    "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=arn:aws:sns:eu-west-1:123456789012:"
    "ses-events&Token=2336412f37";

/// A key, and a certificate of it.
class Signer {
 public:
  explicit Signer(const char* kind = "RSA")
      : key_(kind == std::string("RSA") ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256")) {
    auto* certificate = X509_new();
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key_);
    X509_sign(certificate, key_, EVP_sha256());
    auto* bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(bio, certificate);
    char* bytes = nullptr;
    const auto size = BIO_get_mem_data(bio, &bytes);
    pem.assign(bytes, static_cast<std::size_t>(size));
    BIO_free(bio);
    X509_free(certificate);
  }
  ~Signer() { EVP_PKEY_free(key_); }
  Signer(const Signer&) = delete;
  Signer& operator=(const Signer&) = delete;

  std::string sign(const std::string& text, const EVP_MD* digest) const {
    auto* context = EVP_MD_CTX_new();
    const auto* bytes = static_cast<const unsigned char*>(static_cast<const void*>(text.data()));
    std::size_t size = 0;
    EVP_DigestSignInit(context, nullptr, digest, nullptr, key_);
    EVP_DigestSign(context, nullptr, &size, bytes, text.size());
    std::vector<std::uint8_t> signature(size);
    EVP_DigestSign(context, signature.data(), &size, bytes, text.size());
    signature.resize(size);
    EVP_MD_CTX_free(context);
    return crypto::base64(signature);
  }

  std::string pem;

 private:
  EVP_PKEY* key_;
};

struct FakeWeb final : webhook::SnsWeb {
  std::map<std::string, std::string> pages;
  std::vector<std::string> asked;

  std::optional<std::string> get(const std::string& url) override {
    asked.push_back(url);
    const auto found = pages.find(url);
    return found == pages.end() ? std::nullopt : std::optional(found->second);
  }
};

struct SnsRig {
  Signer signer;
  FakeWeb web;
  webhook::SnsVerifier sns{{topic}, web};
  webhook::SvixVerifier svix{http::WebhookSigner(std::vector<std::string>{})};
  webhook::MailgunVerifier mailgun{{}};
  webhook::SendGridVerifier sendgrid{{}, ""};
  webhook::SecretVerifier secrets{{}};
  std::vector<bounce::ReadEvent> recorded;
  webhook::EventWebhook webhook{
      {.svix = svix, .sns = sns, .web = web, .mailgun = mailgun, .sendgrid = sendgrid, .secrets = secrets},
      [this](std::vector<bounce::ReadEvent> events) {
        std::ranges::move(events, std::back_inserter(recorded));
        return webhook::EventReceipt::recorded;
      }};

  SnsRig() { web.pages[certificate_url] = signer.pem; }

  /// Signs as the documents of Amazon say, member by member.
  Json message(const std::string& type, const std::string& content, int version = 1) const {
    Json json{{"Type", type},
              {"MessageId", "da41e39f-ea4d-435a-b922-c6aae3915ebe"},
              {"TopicArn", topic},
              {"Subject", "Amazon SES Email Event Notification"},
              {"Message", content},
              {"Timestamp", "2026-11-25T15:41:19.910Z"},
              {"SignatureVersion", std::to_string(version)},
              {"SigningCertURL", certificate_url}};
    if (type != "Notification") {
      json["Token"] = "2336412f37";
      json["SubscribeURL"] = confirmation_url;
    }
    return signed_again(json);
  }
  Json signed_again(Json json) const {
    const auto line = [&](const char* key) {
      return std::string(key) + "\n" + json[key].get<std::string>() + "\n";
    };
    auto text = line("Message") + line("MessageId");
    if (json["Type"] == "Notification") {
      if (json.contains("Subject")) text += line("Subject");
      text += line("Timestamp") + line("TopicArn") + line("Type");
    } else {
      text += line("SubscribeURL") + line("Timestamp") + line("Token") + line("TopicArn") + line("Type");
    }
    json["Signature"] = signer.sign(text, json["SignatureVersion"] == "1" ? EVP_sha1() : EVP_sha256());
    return json;
  }
  int post(const Json& json) {
    return webhook
        .answer({.method = "POST",
                 .path = "/",
                 .headers = {{"x-amz-sns-message-type", "Notification"}},
                 .body = plain_json(json)})
        .status;
  }
};

const std::string event =
    R"({"eventType":"Delivery","mail":{"messageId":"0102"},"delivery":{"recipients":["ada@mail.example"]}})";

}  // namespace

TEST_CASE("a notification that SNS has signed for our topic is recorded, with either version of signatures") {
  SnsRig rig;
  for (const int version : {1, 2})
    CHECK(rig.post(rig.message("Notification", event, version)) == 200);
  auto bare = rig.message("Notification", event);
  bare.erase("Subject");
  CHECK(rig.post(rig.signed_again(bare)) == 200);
  REQUIRE(rig.recorded.size() == 3);
  CHECK(rig.recorded.front().bounce.mail.id == "0102");
  CHECK(rig.recorded.front().bytes == event);
  CHECK(rig.web.asked == std::vector<std::string>{certificate_url});
  CHECK(rig.post(rig.message("Notification", "Successfully validated SNS topic")) == 200);
  CHECK(rig.recorded.size() == 3);
}

TEST_CASE("a message that is not signed for our topic by a certificate of Amazon changes nothing") {
  SnsRig rig;
  const auto good = rig.message("Notification", event);
  const Signer stranger;
  const std::vector<std::pair<const char*, std::string>> changes{
      {"Message", event + " "},
      {"MessageId", "another"},
      {"Subject", "another"},
      {"Timestamp", "2026-11-25T15:41:20.910Z"},
      {"TopicArn", "arn:aws:sns:eu-west-1:210987654321:ses-events"},
      {"Signature", "AAAA"},
      {"Signature", "no base64"},
      {"Signature", ""},
      {"Signature", stranger.sign("x", EVP_sha1())},
      {"SignatureVersion", "2"},
      {"SignatureVersion", "3"},
      {"SigningCertURL", "https://sns.eu-west-1.amazonaws.com.evil.example/SimpleNotificationService-01.pem"},
      {"Type", "Other"}};
  for (const auto& [member, value] : changes) {
    INFO(member << " " << value);
    auto changed = good;
    changed[member] = value;
    CHECK(rig.post(changed) == 401);
  }
  auto added = good;
  added["Subject"] = "x\nTimestamp";
  CHECK(rig.post(added) == 401);
  CHECK(rig.post(Json::array()) == 401);
  auto foreign = good;
  foreign["TopicArn"] = "arn:aws:sns:eu-west-1:210987654321:ses-events";
  CHECK(rig.post(rig.signed_again(foreign)) == 401);
  CHECK(rig.recorded.empty());
  CHECK(rig.webhook.take_news().refused == static_cast<int>(changes.size()) + 3);
  // Nothing but the one certificate was fetched.
  CHECK(rig.web.asked.size() == 1);
  webhook::SnsVerifier none({}, rig.web);
  CHECK(none.check(webhook::parse_sns_message(plain_json(good)).value()).problem ==
        "bounce.sns_topics names no topic");
}

TEST_CASE("a certificate is fetched from hosts of Amazon SNS only") {
  CHECK(webhook::is_sns_certificate_url(certificate_url));
  CHECK(webhook::is_sns_certificate_url(
      "https://sns.cn-north-1.amazonaws.com.cn/SimpleNotificationService-0a.pem"));
  for (const std::string url :
       {"http://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0a.pem",
        "https://sns.us-east-1.amazonaws.com.evil.example/SimpleNotificationService-0a.pem",
        "https://evil.example/sns.us-east-1.amazonaws.com/SimpleNotificationService-0a.pem",
        "https://sns.us-east-1.amazonaws.com@evil.example/SimpleNotificationService-0a.pem",
        "https://user@sns.us-east-1.amazonaws.com/SimpleNotificationService-0a.pem",
        "https://sns.us-east-1.amazonaws.com:8443/SimpleNotificationService-0a.pem",
        "https://sns.us-east-1.amazonaws.com/../bucket/SimpleNotificationService-0a.pem",
        "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-0a.pem?x",
        "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-0a.pem#x",
        "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-0a.pem\n",
        "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-0axpem",
        "https://sns.evil.example.amazonaws.com/SimpleNotificationService-0a.pem",
        "https://xsns.us-east-1.amazonaws.com/SimpleNotificationService-0a.pem",
        "https://s3.us-east-1.amazonaws.com/SimpleNotificationService-0a.pem",
        "https://sns.us-east-1xamazonaws.com/SimpleNotificationService-0a.pem", ""}) {
    INFO(url);
    CHECK_FALSE(webhook::is_sns_certificate_url(url));
  }
  CHECK_FALSE(webhook::is_sns_certificate_url(
      "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-" + std::string(100'000, 'a') + ".pem"));
}

TEST_CASE("a subscription is confirmed for our topic only, and at an address of Amazon") {
  SnsRig rig;
  const auto good = rig.message("SubscriptionConfirmation", "You have chosen to subscribe");
  CHECK(rig.post(good) == 503);
  rig.web.pages[confirmation_url] = "<ConfirmSubscriptionResponse/>";
  CHECK(rig.post(good) == 200);
  CHECK(rig.webhook.take_news().confirmed == std::vector<std::string>{topic});
  rig.web.asked.clear();
  for (const std::string url :
       {"https://evil.example/?Action=ConfirmSubscription&a=b",
        "https://sns.eu-west-1.amazonaws.com.evil.example/?Action=ConfirmSubscription&a=b",
        "https://sns.eu-west-1.amazonaws.com/?Action=DeleteTopic&a=b",
        "http://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&a=b"}) {
    INFO(url);
    auto changed = good;
    changed["SubscribeURL"] = url;
    CHECK(rig.post(changed) == 401);
    CHECK(rig.post(rig.signed_again(changed)) == 401);
  }
  auto foreign = good;
  foreign["TopicArn"] = "arn:aws:sns:eu-west-1:210987654321:x";
  CHECK(rig.post(rig.signed_again(foreign)) == 401);
  CHECK(rig.web.asked.empty());
  CHECK(rig.post(rig.message("UnsubscribeConfirmation", "You have chosen to deactivate")) == 200);
  CHECK(rig.web.asked.empty());
  CHECK(rig.webhook.take_news().unsubscribed == std::vector<std::string>{topic});
}

TEST_CASE("a certificate that cannot be fetched makes SNS post again, and is not asked for at once") {
  SnsRig rig;
  rig.web.pages.clear();
  const auto message = rig.message("Notification", event);
  CHECK(rig.post(message) == 503);
  CHECK(rig.post(message) == 503);
  CHECK(rig.web.asked.size() == 1);
  CHECK(rig.recorded.empty());
}

TEST_CASE("only an RSA certificate has signed anything") {
  const Signer rsa;
  const Signer curve("EC");
  const auto signature = crypto::decoded_base64(rsa.sign("text", EVP_sha256())).value();
  CHECK(crypto::is_signed_by_certificate(rsa.pem, "text", signature, crypto::SignedDigest::sha256));
  CHECK_FALSE(crypto::is_signed_by_certificate(rsa.pem, "text", signature, crypto::SignedDigest::sha1));
  CHECK_FALSE(crypto::is_signed_by_certificate(rsa.pem, "text", {}, crypto::SignedDigest::sha256));
  const auto other = crypto::decoded_base64(curve.sign("text", EVP_sha256())).value();
  CHECK_FALSE(crypto::is_signed_by_certificate(curve.pem, "text", other, crypto::SignedDigest::sha256));
  for (const std::string pem : {"", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "x"})
    CHECK_FALSE(crypto::is_signed_by_certificate(pem, "text", signature, crypto::SignedDigest::sha256));
}

}  // namespace mailroom::test::sns_test
