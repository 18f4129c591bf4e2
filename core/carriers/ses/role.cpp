// The role of this container or instance, whose credentials a service of AWS gives out on the host's own
// network. Short time-outs: outside of AWS these addresses lead nowhere.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fmt/format.h>

#include "base/encoded_text.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/secret_file.hpp"
#include "base/text.hpp"
#include "carriers/http/exchange.hpp"
#include "carriers/ses/credentials.hpp"

namespace mailroom::ses {
namespace {

constexpr auto role_hint =
    "give the instance or the container a role that may send, or set send.ses_credentials_file";
constexpr auto container_host = "http://169.254.170.2";
constexpr auto instance_host = "http://169.254.169.254";
/// Where http:// may go: this host, and the addresses of the services of ECS and EKS.
constexpr std::array<std::string_view, 6> plain_hosts{"127.0.0.1",     "localhost",      "[::1]",
                                                      "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"};

std::string environment_text(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

void check_container_url(const std::string& url) {
  if (url.starts_with("https://")) return;
  const std::string_view scheme = "http://";
  if (url.starts_with(scheme)) {
    const auto authority = url.substr(scheme.size(), url.find('/', scheme.size()) - scheme.size());
    const auto is_host = [&](std::string_view host) {
      return authority == host || authority.starts_with(fmt::format("{}:", host));
    };
    if (std::ranges::any_of(plain_hosts, is_host)) return;
  }
  throw Error(ExitCode::configuration,
              "AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https:// nor a service of this host",
              "unset it, or set send.ses_credentials_file");
}

std::string body_of(http::HttpRequest request, const std::string& what) {
  http::HttpEndpoint endpoint;
  endpoint.url = request.url;
  endpoint.user_agent = "mailroom";
  endpoint.timeout = std::chrono::seconds(2);
  const auto outcome = http::HttpExchange(endpoint).perform(std::move(request));
  if (outcome.end == http::HttpEnd::answered && outcome.response.status / 100 == 2)
    return outcome.response.body;
  const auto why = outcome.end == http::HttpEnd::answered
                       ? fmt::format("it answers {}", outcome.response.status)
                       : printable(outcome.failure);
  throw Error(ExitCode::failed, fmt::format("no AWS credentials from {}: {}", what, why), role_hint);
}

AwsCredentials fetch_of_container(const RoleSource& source) {
  auto token = source.token;
  if (!source.token_file.empty()) {
    const SecretFile file(source.token_file,
                          {"token", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "", "it must have one line"},
                          true);
    token = file.text();
  }
  http::HttpRequest request{.method = "GET", .url = source.container_url};
  if (!token.empty()) request.headers.push_back("Authorization: " + token);
  const std::string what = "the role of this container";
  return parse_role_credentials(body_of(std::move(request), what), what);
}

AwsCredentials fetch_of_instance(const std::string& url) {
  const std::string what = "the role of this instance";
  const auto token = body_of({.method = "PUT",
                              .url = url + "/latest/api/token",
                              .headers = {"X-aws-ec2-metadata-token-ttl-seconds: 21600"}},
                             what);
  const auto get = [&](const std::string& path) {
    return body_of({.method = "GET",
                    .url = fmt::format("{}/latest/meta-data/iam/security-credentials/{}", url, path),
                    .headers = {fmt::format("X-aws-ec2-metadata-token: {}", trimmed(token))}},
                   what);
  };
  const auto names = get("");
  const std::string name(trimmed(std::string_view(names).substr(0, names.find('\n'))));
  return parse_role_credentials(get(percent_encoded(name)), what);
}

}  // namespace

RoleSource role_source() {
  RoleSource source;
  source.token = environment_text("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  source.token_file = environment_text("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  if (const auto path = environment_text("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); !path.empty()) {
    source.container_url = container_host + path;
  } else if (auto url = environment_text("AWS_CONTAINER_CREDENTIALS_FULL_URI"); !url.empty()) {
    check_container_url(url);
    source.container_url = std::move(url);
  }
  source.instance_url = environment_text("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  if (source.instance_url.empty()) source.instance_url = instance_host;
  if (source.instance_url.ends_with('/')) source.instance_url.pop_back();
  return source;
}

AwsCredentials fetch_role_credentials(const RoleSource& source) {
  return source.container_url.empty() ? fetch_of_instance(source.instance_url) : fetch_of_container(source);
}

}  // namespace mailroom::ses
