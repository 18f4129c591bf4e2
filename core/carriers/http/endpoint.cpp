// Lets libcurl parse the URL, so that it is checked as it will be used.

#include <arpa/inet.h>
#include <curl/curl.h>
#include <fmt/format.h>
#include <memory>

#include "base/error.hpp"
#include "base/text.hpp"
#include "carriers/http/post.hpp"

namespace mailroom {
namespace {

constexpr auto url_form = "write it as https://app.example/tokens";

[[noreturn]] void refuse_endpoint(std::string_view problem, const char* hint = url_form) {
  throw Error(ExitCode::configuration, fmt::format("the URL of sink.to {}", problem), hint);
}

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

HttpEndpoint parse_http_endpoint(const Settings& settings) {
  const std::unique_ptr<CURLU, FreeUrl> url(curl_url());
  if (!is_printable(settings.sink.to) || !url ||
      curl_url_set(url.get(), CURLUPART_URL, settings.sink.to.c_str(), 0) != CURLUE_OK) {
    refuse_endpoint("is malformed");
  }
  if (!part_of(url.get(), CURLUPART_USER).empty() || !part_of(url.get(), CURLUPART_PASSWORD).empty()) {
    refuse_endpoint("has a user or a password", "requests are signed instead: see sink.signing_secret_files");
  }
  if (!part_of(url.get(), CURLUPART_FRAGMENT).empty())
    refuse_endpoint("has a fragment", "remove it from the #");
  const auto host = part_of(url.get(), CURLUPART_HOST);
  if (part_of(url.get(), CURLUPART_SCHEME) == "http" && !is_this_host(host)) {
    refuse_endpoint("is http:// to another host", "use https://: tokens must not be readable on the network");
  }
  return {.url = settings.sink.to,
          .name = fmt::format("{}:{}", host, part_of(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT)),
          .ca_file = settings.sink.ca_file,
          .user_agent = "mailroom/" MAILROOM_VERSION,
          .event_source = settings.sink.event_source,
          .timeout = settings.sink.timeout};
}

}  // namespace mailroom
