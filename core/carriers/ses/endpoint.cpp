// Lets a region be no more than a name of AWS's form: it becomes part of a host's name.

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/pattern.hpp"
#include "base/secret_text.hpp"
#include "base/text.hpp"
#include "carriers/ses/carrier.hpp"
#include "config/server_url.hpp"

namespace mailroom::ses {
namespace {

const config::UrlForm ses_form{.subject = "the relay",
                               .schemes = {{"ses", 443}},
                               .password_key = "send.ses_credentials_file",
                               .hint = "write it as ses://eu-west-1, with the region of your identities",
                               .has_path = false};

[[noreturn]] void refuse_relay(const std::string& relay, std::string_view problem) {
  throw Error(ExitCode::configuration,
              fmt::format("the relay '{}' {}", without_url_passwords(relay), problem), ses_form.hint);
}

std::string region_of(const std::string& relay) {
  static const Pattern form("[a-z]{2,3}(-[a-z]+)+-[1-9][0-9]?");
  const auto url = config::parse_server_url(relay, ses_form);
  const auto& server = url.servers.front();
  if (!url.user.empty())
    refuse_relay(relay, "names a user: its credentials are in a file, or those of a role");
  if (server.port != 443) refuse_relay(relay, "has a port: send.ses_endpoint names another endpoint");
  if (!form.matches(server.host)) refuse_relay(relay, "names no region of AWS");
  return server.host;
}

std::string url_of_region(const std::string& region) {
  const auto* const domain = region.starts_with("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
  return fmt::format("https://email.{}.{}", region, domain);
}

}  // namespace

SesEndpoint parse_ses_endpoint(const config::RelayPath& path) {
  SesEndpoint endpoint;
  endpoint.region = region_of(path.targets.front().url);
  constexpr auto key = "send.ses_endpoint";
  const auto given = path.option(key);
  const auto url = given.empty() ? url_of_region(endpoint.region) : given;
  endpoint.http = http::parse_http_server(url, path.name_of(key),
                                          "requests are signed instead: see send.ses_credentials_file",
                                          "https://vpce-….email.eu-west-1.vpce.amazonaws.com");
  endpoint.host = endpoint.http.url.substr(endpoint.http.url.find("://") + 3);
  endpoint.http.offers_http2 = true;
  if (!path.profile.empty()) endpoint.http.name += fmt::format(" ({})", path.profile);
  endpoint.http.ca_file = path.ca_file;
  endpoint.http.timeout = path.timeout;
  return endpoint;
}

}  // namespace mailroom::ses
