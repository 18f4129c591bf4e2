// Lines as webhooks: how a request is made and signed, and the server that sink.to names.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "carriers/carriers.hpp"
#include "carriers/http/carrier.hpp"
#include "config/settings.hpp"
#include "crypto/hmac.hpp"

namespace mailroom::http {

/// The endpoint of sink.to. Throws Error(configuration) as parse_http_url().
HttpEndpoint parse_http_endpoint(const config::Settings& settings);

/// Signs requests by the conventions of Standard Webhooks, with one secret or with several while one is
/// replaced.
class WebhookSigner {
 public:
  /// Reads each file: `whsec_` and the base64 of 24 to 64 bytes. `named_by`: the setting that names them.
  /// Throws Error(configuration).
  WebhookSigner(const std::vector<std::string>& files, bool allow_readable,
                std::string_view named_by = "sink.signing_secret_files");
  /// Takes the secrets themselves. Throws Error(configuration) that names the place of a wrong one, but not
  /// the secret.
  explicit WebhookSigner(const std::vector<std::string>& secrets);

  bool signs() const { return !secrets_.empty(); }
  /// The header webhook-signature: `v1,BASE64` for each secret, separated by blanks.
  std::string signature(std::string_view id, std::int64_t timestamp, std::string_view body);
  /// True if one of the signatures in `header`, which is such a header, was made with one of the secrets.
  bool has_signed(std::string_view header, std::string_view id, std::int64_t timestamp,
                  std::string_view body);

 private:
  void add(std::string_view secret, const std::string& source);

  std::vector<crypto::Hmac> secrets_;
};

/// Posts each line to a server; docs/webhooks.md says how, and what its answers mean.
class WebhookProtocol final : public HttpProtocol {
 public:
  /// `event_source`: of CloudEvents headers; empty for none.
  WebhookProtocol(WebhookSigner signer, std::string event_source, bool has_svix_headers = false)
      : signer_(std::move(signer)),
        event_source_(std::move(event_source)),
        has_svix_headers_(has_svix_headers) {}

  HttpRequest request(const delivery::Message& message, std::int64_t now) override;
  delivery::Answer judge(const delivery::Message& message, const HttpOutcome& outcome,
                         std::int64_t now) override;

 private:
  WebhookSigner signer_;
  std::string event_source_;
  bool has_svix_headers_;
};

std::unique_ptr<delivery::Carrier> make_http_carrier(const carriers::CarrierSetup& setup);
std::vector<carriers::SinkFinding> check_http(const config::Settings& settings);

}  // namespace mailroom::http
