// Makes the request of a mail: JSON around the base64 of its bytes, and a signature over all of it.

#include "carriers/ses/carrier.hpp"

#include <fmt/format.h>
#include <span>

#include "base/encoded_text.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "carriers/ses/answer.hpp"
#include "carriers/ses/message_id.hpp"
#include "carriers/ses/signature.hpp"
#include "crypto/base64.hpp"

namespace mailroom::ses {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr auto mail_path = "/v2/email/outbound-emails";
constexpr auto json_type = "application/json";

OrderedJson tags_of(const delivery::Message& message) {
  auto tags = OrderedJson::array();
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) tags.push_back({{"Name", name}, {"Value", value}});
  };
  add("queue", tag_text(message.queue, "_-.@", 256));
  if (!message.tokens.empty()) add("token", std::to_string(message.tokens.front()));
  return tags;
}

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {static_cast<const std::uint8_t*>(static_cast<const void*>(text.data())), text.size()};
}

AwsScope scope_of(const SesEndpoint& endpoint) {
  return {.region = endpoint.region, .service = "ses"};
}

}  // namespace

std::string ses_body(const delivery::Message& message, const std::string& configuration_set) {
  OrderedJson rest{{"Destination", {{"ToAddresses", OrderedJson::array({message.envelope.to})}}}};
  if (!configuration_set.empty()) rest["ConfigurationSetName"] = configuration_set;
  if (auto tags = tags_of(message); !tags.empty()) rest["EmailTags"] = std::move(tags);
  // The bytes need no escapes, and are long.
  std::string body = R"({"Content":{"Raw":{"Data":")";
  body += crypto::base64(bytes_of(message.body));
  body += R"("}},)";
  body += std::string_view(json_text(rest)).substr(1);
  return body;
}

http::HttpRequest ses_query(const SesEndpoint& endpoint, const std::string& path,
                            const AwsCredentials& credentials, std::int64_t now) {
  return {.method = "GET",
          .url = endpoint.http.url + path,
          .headers = signed_headers({.method = "GET", .host = endpoint.host, .path = path}, credentials,
                                    scope_of(endpoint), now)};
}

http::HttpRequest SesProtocol::request(const delivery::Message& message, std::int64_t now) {
  const auto& endpoint = options_.endpoint;
  if (!message.envelope.utf8_sender.empty()) {
    throw Error(ExitCode::configuration,
                fmt::format("SES takes no mails from {}, which has other letters than ASCII before the @",
                            message.envelope.utf8_sender),
                "set send.from, and send.reply_to if there is one, to an address in ASCII");
  }
  http::HttpRequest request{.url = endpoint.http.url + mail_path};
  request.body = ses_body(message, options_.configuration_set);
  request.headers = signed_headers({.method = "POST",
                                    .host = endpoint.host,
                                    .path = mail_path,
                                    .content_type = json_type,
                                    .body = request.body},
                                   credentials_.get(wall_now()), scope_of(endpoint), now);
  return request;
}

delivery::Answer SesProtocol::judge(const delivery::Message& message, const http::HttpOutcome& outcome,
                                    std::int64_t now) {
  auto answer = judge_ses(outcome, message.envelope.to, now);
  if (answer.verdict == delivery::Verdict::accepted)
    answer.message_id = message_id_of(answer.reply, options_.endpoint.region);
  if (outcome.end == http::HttpEnd::answered && answer.verdict == delivery::Verdict::unavailable &&
      is_about_login(parse_ses_error(outcome.response), outcome.response.status)) {
    credentials_.forget();
  }
  return answer;
}

std::unique_ptr<delivery::Carrier> make_ses_carrier(const config::RelayPath& path) {
  auto endpoint = parse_ses_endpoint(path);
  auto http = endpoint.http;
  auto protocol = std::make_unique<SesProtocol>(
      SesProtocol::Options{.endpoint = std::move(endpoint),
                           .configuration_set = path.option("send.ses_configuration_set"),
                           .fetch = credential_source(path)});
  return std::make_unique<http::HttpCarrier>(std::move(http), std::move(protocol), path.connections,
                                             2 * path.connections);
}

extern const carriers::RelayFunctions ses_carrier;
const carriers::RelayFunctions ses_carrier{make_ses_carrier, check_ses, http::http_library};

}  // namespace mailroom::ses
