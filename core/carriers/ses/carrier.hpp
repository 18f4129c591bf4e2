// What carries mails to Amazon SES, its endpoint, and what the account there says of itself.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "carriers/carriers.hpp"
#include "carriers/http/carrier.hpp"
#include "carriers/http/exchange.hpp"
#include "carriers/ses/credentials.hpp"
#include "config/relay_path.hpp"

namespace mailroom::ses {

struct SesEndpoint {
  std::string region;
  http::HttpEndpoint http;  ///< its URL has no slash at its end
  std::string host;         ///< as the header Host has it
};

/// The endpoint of a path with one target, `ses://REGION`. Throws Error(configuration) for another URL, and
/// for what is no name of a region.
SesEndpoint parse_ses_endpoint(const config::RelayPath& path);

/// Posts each mail as it is (Content.Raw), for its one recipient, signed; docs/providers.md says what the
/// answers mean.
class SesProtocol final : public http::HttpProtocol {
 public:
  struct Options {
    SesEndpoint endpoint;
    std::string configuration_set{};  ///< empty for none
    CredentialKeeper::Fetch fetch;
  };

  explicit SesProtocol(Options options) : options_(std::move(options)), credentials_(options_.fetch) {}

  http::HttpRequest request(const delivery::Message& message, std::int64_t now) override;
  delivery::Answer judge(const delivery::Message& message, const http::HttpOutcome& outcome,
                         std::int64_t now) override;
  bool keeps_message_id() const override { return false; }

 private:
  Options options_;
  CredentialKeeper credentials_;
};

/// The JSON that asks SES for a mail.
std::string ses_body(const delivery::Message& message, const std::string& configuration_set);

/// A GET of `path`, which has percent signs where it needs them.
http::HttpRequest ses_query(const SesEndpoint& endpoint, const std::string& path,
                            const AwsCredentials& credentials, std::int64_t now);

/// Throws Error(configuration) as parse_ses_endpoint() and credential_source().
std::unique_ptr<delivery::Carrier> make_ses_carrier(const config::RelayPath& path);

/// Asks the account whether it may send, and whether it knows the sender. Sends nothing.
std::vector<carriers::SinkFinding> check_ses(const config::RelayPath& path, const mail::ConfiguredMail& mail);

/// Reads the answer of GET /v2/email/account: sandbox, quota, whether it may send. Pure.
std::vector<carriers::SinkFinding> judge_ses_account(std::string_view body);

/// What the answers of GET /v2/email/identities/ say of an address, or of its domain: true if SES has
/// verified it for sending. Pure.
bool is_verified_identity(std::string_view body);

}  // namespace mailroom::ses
