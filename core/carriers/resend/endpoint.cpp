// Lets nothing follow resend://, as there is one service of that name.

#include "carriers/resend/endpoint.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/secret_file.hpp"
#include "base/text.hpp"
#include "config/server_url.hpp"

namespace mailroom::resend {
namespace {

constexpr auto usual_url = "https://api.resend.com";
constexpr auto key_file = "send.resend_key_file";

bool is_key(std::string_view text) {
  return text.starts_with("re_") && std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7F; });
}

}  // namespace

http::HttpEndpoint parse_resend_endpoint(const config::RelayPath& path) {
  if (lower_case(path.targets.front().url) != "resend://") {
    // What follows may be the key.
    throw Error(ExitCode::configuration, "a relay of Resend has more than resend:// in its URL",
                fmt::format("write it as resend:// and name the file with the key in {}", key_file));
  }
  constexpr auto key = "send.resend_endpoint";
  const auto given = path.option(key);
  auto endpoint = http::parse_http_server(given.empty() ? usual_url : given, path.name_of(key),
                                          "the key is in send.resend_key_file instead", usual_url);
  endpoint.offers_http2 = true;
  if (!path.profile.empty()) endpoint.name += fmt::format(" ({})", path.profile);
  endpoint.ca_file = path.ca_file;
  endpoint.timeout = path.timeout;
  return endpoint;
}

std::string read_resend_key(const config::RelayPath& path) {
  const auto name = path.name_of(key_file);
  const auto file = path.option(key_file);
  if (file.empty()) config::refuse_missing({name}, key_file);
  auto key = read_password_file(file, path.allows_readable_files, name);
  if (is_key(key)) return key;
  throw Error(ExitCode::configuration, fmt::format("{} has no API key of Resend: {}", name, file),
              "write the key alone into it, as Resend shows it once: re_…");
}

}  // namespace mailroom::resend
