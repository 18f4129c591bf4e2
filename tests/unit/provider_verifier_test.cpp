// Who may post the events of Mailgun, SendGrid and of providers that sign nothing.

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include "base/encoded_text.hpp"
#include "base/json.hpp"
#include "crypto/base64.hpp"
#include "support/catch.hpp"
#include "webhook/event_webhook.hpp"

namespace mailroom::test::provider_verifier_test {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t moment = 1'795'000'000;
const std::string signing_key = "key-0123456789abcdef";

std::string mailgun_body(std::int64_t seconds, const std::string& token, const std::string& id,
                         const std::string& key = signing_key, const char* place = "signature") {
  crypto::Hmac hmac(
      std::span(static_cast<const std::uint8_t*>(static_cast<const void*>(key.data())), key.size()));
  const auto time = std::to_string(seconds);
  Json signature{{"timestamp", time}, {"token", token}, {"signature", std::string(64, '0')}};
  signature[place] = hex_text(hmac.digest({time, token}));
  return plain_json(Json{{"signature", signature}, {"event-data", {{"event", "failed"}, {"id", id}}}});
}

process::HttpCall call_with(const std::string& path,
                            std::multimap<std::string, std::string, std::less<>> headers = {},
                            std::map<std::string, std::string, std::less<>> query = {}) {
  return {
      .method = "POST", .path = path, .headers = std::move(headers), .body = {}, .query = std::move(query)};
}

std::string basic(const std::string& login) {
  return "Basic " +
         crypto::base64(std::span(static_cast<const std::uint8_t*>(static_cast<const void*>(login.data())),
                                  login.size()));
}

// Published with SendGrid's libraries.
const std::string sendgrid_key =
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g==";
const std::string sendgrid_signature =
    "MEUCIGHQVtGj+Y3LkG9fLcxf3qfI10QysgDWmMOVmxG0u6ZUAiEAyBiXDWzM+uOe5W0JuG+luQAbPIqHh89M15TluLtEZtM=";
constexpr std::int64_t sendgrid_time = 1'600'112'502;
const std::string sendgrid_body =
    R"([{"email":"hello@world.com","event":"dropped","reason":"Bounced Address","sg_event_id":"ZHJvcC0xMDk5NDkxOS1MUnpYbF9OSFN0T0doUTRrb2ZTbV9BLTA","sg_message_id":"LRzXl_NHStOGhQ4kofSm_A.filterdrecv-p3mdw1-756b745b58-kmzbl-18-5F5FC76C-9.0","smtp-id":"<LRzXl_NHStOGhQ4kofSm_A@ismtpd0039p1iad1.sendgrid.net>","timestamp":1600112492}])"
    "\r\n";

process::HttpCall sendgrid_call(const std::string& body = sendgrid_body,
                                const std::string& signature = sendgrid_signature,
                                const std::string& time = std::to_string(sendgrid_time)) {
  return {.method = "POST",
          .path = "/",
          .headers = {{"x-twilio-email-event-webhook-signature", signature},
                      {"x-twilio-email-event-webhook-timestamp", time}},
          .body = body};
}

}  // namespace

TEST_CASE("Mailgun's signature is over its time and token, by the key of the account or of its parent") {
  webhook::MailgunVerifier verifier({"key-of-another-account", signing_key});
  CHECK(verifier.problem_of(mailgun_body(moment, "t1", "1"), moment).empty());
  CHECK(
      verifier.problem_of(mailgun_body(moment, "t2", "1", signing_key, "parent-signature"), moment).empty());
  CHECK(verifier.problem_of(mailgun_body(moment, "t3", "1", "key-of-somebody-else"), moment) ==
        "no key in bounce.mailgun_secret_files has signed it");
  auto changed = parse_json(mailgun_body(moment, "t4", "1"));
  changed["signature"]["timestamp"] = std::to_string(moment + 1);
  CHECK_FALSE(verifier.problem_of(plain_json(changed), moment).empty());
  changed = parse_json(mailgun_body(moment, "t5", "1"));
  changed["signature"]["token"] = "t6";
  CHECK_FALSE(verifier.problem_of(plain_json(changed), moment).empty());
  for (const auto* const member : {"timestamp", "token"}) {
    changed = parse_json(mailgun_body(moment, "t7", "1"));
    changed["signature"].erase(member);
    CHECK(verifier.problem_of(plain_json(changed), moment) ==
          "a member of the signature is missing or malformed");
  }
  webhook::MailgunVerifier none({});
  CHECK(none.problem_of(mailgun_body(moment, "t1", "1"), moment)
            .starts_with("bounce.mailgun_secret_files names no"));
}

TEST_CASE(
    "a token of Mailgun is good for one event, which may come again for hours, and not for a first time") {
  webhook::MailgunVerifier verifier({signing_key});
  const auto first = mailgun_body(moment, "t1", "1");
  CHECK(verifier.problem_of(first, moment + 1200).empty());
  CHECK(verifier.problem_of(first, moment + 8 * 3600).empty());
  CHECK(verifier.problem_of(mailgun_body(moment, "t1", "2"), moment + 60) ==
        "its token came with another event");
  CHECK(verifier.problem_of(first, moment + 11 * 3600) == "it was signed more than 20 minutes ago");
  CHECK(verifier.problem_of(mailgun_body(moment, "t2", "1"), moment + 1201) ==
        "it was signed more than 20 minutes ago");
  CHECK(verifier.problem_of(mailgun_body(moment, "t3", "1"), moment - 1201) ==
        "it was signed more than 20 minutes in the future");
  // What was refused for its age has used up nothing.
  CHECK(verifier.problem_of(mailgun_body(moment, "t2", "3"), moment).empty());
}

TEST_CASE("SendGrid's published signature is valid, only for its bytes, its time and its key") {
  const webhook::SendGridVerifier verifier({sendgrid_key}, "bounce.sendgrid_key_files");
  CHECK(verifier.problem_of(sendgrid_call(), sendgrid_time).empty());
  const webhook::SendGridVerifier pem({"-----BEGIN PUBLIC KEY-----\n" + sendgrid_key.substr(0, 64) + "\n" +
                                       sendgrid_key.substr(64) + "\n-----END PUBLIC KEY-----"},
                                      "x");
  CHECK(pem.problem_of(sendgrid_call(), sendgrid_time).empty());
  CHECK(verifier.problem_of(sendgrid_call(), sendgrid_time + 1201) ==
        "it was signed more than 20 minutes ago");
  CHECK(verifier.problem_of(sendgrid_call(), sendgrid_time - 1201) ==
        "it was signed more than 20 minutes in the future");
  const std::string not_signed = "no key in bounce.sendgrid_key_files has signed it";
  CHECK(verifier.problem_of(sendgrid_call(sendgrid_body + " "), sendgrid_time) == not_signed);
  CHECK(
      verifier.problem_of(sendgrid_call(sendgrid_body, sendgrid_signature, std::to_string(sendgrid_time + 1)),
                          sendgrid_time) == not_signed);
  CHECK(verifier.problem_of(sendgrid_call(sendgrid_body, "AAAA"), sendgrid_time) == not_signed);
  CHECK(verifier.problem_of(sendgrid_call(sendgrid_body, "!"), sendgrid_time) ==
        "a header of the signature is missing or malformed");
  CHECK(verifier.problem_of(sendgrid_call(sendgrid_body, sendgrid_signature, "x"), sendgrid_time) ==
        "a header of the signature is missing or malformed");
  CHECK(webhook::SendGridVerifier({}, "x")
            .problem_of(sendgrid_call(), sendgrid_time)
            .starts_with("bounce.sendgrid_key_files names no"));
  for (const auto* const key : {"", "AAAA", "no base64", sendgrid_signature.c_str()})
    CHECK_THROWS_AS(webhook::SendGridVerifier({key}, "bounce.sendgrid_key_files"), Error);
}

TEST_CASE("a secret is found wherever a URL or a login has it, and says whose events these are") {
  const webhook::SecretVerifier verifier(
      {{"postmark", {"postmark-secret-1", "postmark-secret-2"}}, {"brevo", {"brevo-secret-1234"}}});
  const auto sender = [&](const process::HttpCall& call) {
    const auto* const provider = verifier.sender_of(call);
    return provider == nullptr ? std::string_view() : provider->name;
  };
  CHECK(sender(call_with("/", {{"authorization", basic("any:postmark-secret-1")}})) == "postmark");
  CHECK(sender(call_with("/", {{"authorization", basic("postmark-secret-2")}})) == "postmark");
  CHECK(sender(call_with("/", {{"authorization", "bearer  brevo-secret-1234"}})) == "brevo");
  CHECK(sender(call_with("/hooks/brevo-secret-1234")) == "brevo");
  CHECK(sender(call_with("/brevo-secret-1234/")) == "brevo");
  CHECK(sender(call_with("/", {}, {{"key", "postmark-secret-1"}})) == "postmark");
  for (const auto& call :
       {call_with("/"), call_with("/brevo-secret-123"), call_with("/brevo-secret-12345"),
        call_with("/BREVO-SECRET-1234"), call_with("/", {{"authorization", basic("any:brevo-secret-1234x")}}),
        call_with("/", {{"authorization", "Basic !"}}),
        call_with("/", {{"authorization", "brevo-secret-1234"}}),
        call_with("/", {{"x-secret", "brevo-secret-1234"}})})
    CHECK(sender(call).empty());
  CHECK_THROWS_AS(
      webhook::SecretVerifier({{"postmark", {"one-secret-of-two"}}, {"brevo", {"one-secret-of-two"}}}),
      Error);
}

}  // namespace mailroom::test::provider_verifier_test
