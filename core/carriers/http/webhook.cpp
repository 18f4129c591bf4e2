// The headers of a webhook request, and what doctor sees of its server.

#include "carriers/http/webhook.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/secret_file.hpp"
#include "base/text.hpp"
#include "carriers/cloud_event.hpp"
#include "carriers/http/answer.hpp"
#include "crypto/base64.hpp"

namespace mailroom::http {
namespace {

constexpr std::string_view prefix = "whsec_";
constexpr std::size_t shortest_secret = 24;
constexpr std::size_t longest_secret = 64;
constexpr auto secret_form = "it must have one line, made with: echo whsec_$(openssl rand -base64 32)";

}  // namespace

HttpEndpoint parse_http_endpoint(const config::Settings& settings) {
  auto endpoint = parse_http_url(settings.sink.to, "sink.to",
                                 "requests are signed instead: see sink.signing_secret_files");
  endpoint.ca_file = settings.sink.ca_file;
  endpoint.timeout = settings.sink.timeout;
  return endpoint;
}

HttpRequest WebhookProtocol::request(const delivery::Message& message, std::int64_t now) {
  HttpRequest request;
  request.shared_body = message.body;
  auto& headers = request.headers;
  headers = {"Content-Type: application/json", "Accept: application/json"};
  const auto signature =
      signer_.signs() ? signer_.signature(message.message_id, now, message.body) : std::string();
  for (const auto* beginning : {"webhook", "svix"}) {
    if (beginning == std::string_view("svix") && !has_svix_headers_) continue;
    headers.push_back(fmt::format("{}-id: {}", beginning, message.message_id));
    headers.push_back(fmt::format("{}-timestamp: {}", beginning, now));
    if (!signature.empty()) headers.push_back(fmt::format("{}-signature: {}", beginning, signature));
  }
  headers.push_back(fmt::format("mailroom-attempt: {}", message.attempt));
  for (const auto& [name, value] : carriers::cloud_event_attributes(message, event_source_))
    headers.push_back(fmt::format("ce-{}: {}", name, carriers::cloud_event_header_value(value)));
  return request;
}

delivery::Answer WebhookProtocol::judge(const delivery::Message& /*message*/, const HttpOutcome& outcome,
                                        std::int64_t now) {
  return judge_response(outcome, now);
}

WebhookSigner::WebhookSigner(const std::vector<std::string>& files, bool allow_readable,
                             std::string_view named_by) {
  for (const auto& path : files) {
    const SecretFile file(path, {"signing secret", named_by, "", secret_form}, allow_readable);
    add(file.text(), path);
  }
}

WebhookSigner::WebhookSigner(const std::vector<std::string>& secrets) {
  for (const auto& secret : secrets)
    add(secret, fmt::format("number {}", secrets_.size() + 1));
}

void WebhookSigner::add(std::string_view secret, const std::string& source) {
  const bool has_prefix = secret.starts_with(prefix);
  const auto bytes = crypto::decoded_base64(has_prefix ? secret.substr(prefix.size()) : secret);
  if (!has_prefix || !bytes || bytes->size() < shortest_secret || bytes->size() > longest_secret) {
    throw Error(ExitCode::configuration,
                fmt::format("the signing secret {} is not whsec_ and the base64 of {} to {} bytes", source,
                            shortest_secret, longest_secret),
                secret_form);
  }
  secrets_.emplace_back(std::span(*bytes));
}

std::string WebhookSigner::signature(std::string_view id, std::int64_t timestamp, std::string_view body) {
  std::string header;
  const auto time = std::to_string(timestamp);
  for (auto& secret : secrets_) {
    header += header.empty() ? "v1," : " v1,";
    header += crypto::base64(secret.digest({id, ".", time, ".", body}));
  }
  return header;
}

bool WebhookSigner::has_signed(std::string_view header, std::string_view id, std::int64_t timestamp,
                               std::string_view body) {
  constexpr std::size_t most = 16;
  const auto time = std::to_string(timestamp);
  std::vector<crypto::Digest> given;
  for (const auto word : split(header, ' ')) {
    const auto bytes = word.starts_with("v1,") ? crypto::decoded_base64(word.substr(3)) : std::nullopt;
    if (!bytes || bytes->size() != crypto::digest_size || given.size() == most) continue;
    std::ranges::copy(*bytes, given.emplace_back().begin());
  }
  bool has_signed = false;
  for (auto& secret : secrets_) {
    const auto own = secret.digest({id, ".", time, ".", body});
    for (const auto& digest : given)
      has_signed = crypto::equal_in_constant_time(own, digest) || has_signed;
  }
  return has_signed;
}

std::unique_ptr<delivery::Carrier> make_http_carrier(const carriers::CarrierSetup& setup) {
  const auto& settings = setup.settings;
  return std::make_unique<HttpCarrier>(
      parse_http_endpoint(settings),
      std::make_unique<WebhookProtocol>(
          WebhookSigner(settings.sink.signing_secret_files, settings.signing.allow_readable_key),
          settings.sink.event_source, setup.has_svix_headers),
      settings.sink.in_flight);
}

std::vector<carriers::SinkFinding> check_http(const config::Settings& settings) {
  using Level = carriers::SinkFinding::Level;
  const auto endpoint = parse_http_endpoint(settings);
  const WebhookSigner signer(settings.sink.signing_secret_files, settings.signing.allow_readable_key);
  std::vector<carriers::SinkFinding> findings;
  if (!signer.signs()) {
    findings.push_back({Level::warning, "requests are not signed, so the server cannot tell who sends them",
                        "name a file with a secret in sink.signing_secret_files, made with: echo "
                        "whsec_$(openssl rand -base64 32)"});
  }
  const auto failure = HttpExchange(endpoint).connect();
  if (failure.empty()) {
    findings.push_back({Level::fine, endpoint.name + " takes connections"});
  } else {
    findings.push_back(
        {Level::failure, fmt::format("{} cannot be used: {}", endpoint.name, printable(failure)),
         "start the server, check the host, port and certificate of sink.to, or set sink.ca_file"});
  }
  return findings;
}

extern const carriers::CarrierFunctions http_carrier;
const carriers::CarrierFunctions http_carrier{make_http_carrier, check_http, http_library};

}  // namespace mailroom::http
