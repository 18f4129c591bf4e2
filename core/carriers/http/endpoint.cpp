// Lets libcurl parse the URL, so that it is checked as it will be used.

#include <arpa/inet.h>
#include <curl/curl.h>
#include <fmt/format.h>
#include <memory>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "carriers/http/exchange.hpp"

namespace mailroom::http {
namespace {

struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

/// Empty if the URL does not have the part.
std::string part_of(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return {};
  const std::unique_ptr<char, decltype(&curl_free)> owned(text, curl_free);
  return text;
}

bool is_this_host(const std::string& host) {
  in_addr address{};
  if (inet_pton(AF_INET, host.c_str(), &address) == 1) return ntohl(address.s_addr) >> 24U == 127;
  return lower_case(host) == "localhost" || host == "[::1]";
}

}  // namespace

HttpEndpoint parse_http_url(const std::string& url, std::string_view setting, const char* user_hint,
                            HttpContent content) {
  const auto refuse = [&](const std::string& problem, const std::string& hint) {
    throw Error(ExitCode::configuration, fmt::format("the URL of {} {}", setting, problem), hint);
  };
  const std::unique_ptr<CURLU, FreeUrl> parts(curl_url());
  if (!is_printable(url) || !parts || curl_url_set(parts.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) {
    refuse("is malformed", "write it as https://app.example/tokens");
  }
  if (!part_of(parts.get(), CURLUPART_USER).empty() || !part_of(parts.get(), CURLUPART_PASSWORD).empty())
    refuse("has a user or a password", user_hint);
  if (!part_of(parts.get(), CURLUPART_FRAGMENT).empty()) refuse("has a fragment", "remove it from the #");
  const auto host = part_of(parts.get(), CURLUPART_HOST);
  const bool is_plain = part_of(parts.get(), CURLUPART_SCHEME) == "http";
  if (is_plain && content == HttpContent::secret && !is_this_host(host))
    refuse("is http:// to another host", "use https://: tokens must not be readable on the network");
  HttpEndpoint endpoint;
  endpoint.url = url;
  endpoint.name = fmt::format("{}:{}", host, part_of(parts.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT));
  endpoint.user_agent = "mailroom/" MAILROOM_VERSION;
  return endpoint;
}

HttpEndpoint parse_http_server(const std::string& url, std::string_view setting, const char* user_hint,
                               std::string_view form) {
  const auto refuse = [&](const char* problem) {
    throw Error(ExitCode::configuration, fmt::format("{} {}", setting, problem),
                fmt::format("write it as {}", form));
  };
  if (url.find("://") == std::string::npos) refuse("does not begin with https://");
  auto endpoint = parse_http_url(url, setting, user_hint);
  if (endpoint.url.ends_with('/')) endpoint.url.pop_back();
  if (endpoint.url.find_first_of("/?", endpoint.url.find("://") + 3) != std::string::npos)
    refuse("has a path");
  return endpoint;
}

}  // namespace mailroom::http
