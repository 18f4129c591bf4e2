// Lets nothing follow resend://, as there is one service of that name.

#include "carriers/resend/endpoint.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/secret_file.hpp"
#include "base/text.hpp"
#include "config/server_url.hpp"

namespace mailroom {
namespace {

constexpr auto usual_url = "https://api.resend.com";
constexpr auto key_file = "send.resend_key_file";

bool is_key(std::string_view text) {
  return text.starts_with("re_") && std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7F; });
}

}  // namespace

HttpEndpoint parse_resend_endpoint(const Settings& settings) {
  const auto& send = settings.send;
  if (lower_case(trimmed(send.relay)) != "resend://") {
    // What follows may be the key.
    throw Error(ExitCode::configuration, "a relay of Resend has more than resend:// in its URL",
                fmt::format("write it as resend:// and name the file with the key in {}", key_file));
  }
  const auto key = setting_of(settings, "send.resend_endpoint").name();
  auto endpoint = parse_http_server(send.resend_endpoint.empty() ? usual_url : send.resend_endpoint, key,
                                    "the key is in send.resend_key_file instead", usual_url);
  endpoint.offers_http2 = true;
  if (!send.relay_profile.empty()) endpoint.name += fmt::format(" ({})", send.relay_profile);
  endpoint.ca_file = send.ca_file;
  endpoint.timeout = send.timeout;
  return endpoint;
}

std::string read_resend_key(const Settings& settings) {
  require_keys({key_file}, settings);
  const auto name = setting_of(settings, key_file).name();
  const auto& path = settings.send.resend_key_file;
  auto key = read_password_file(path, settings.signing.allow_readable_key, name);
  if (is_key(key)) return key;
  throw Error(ExitCode::configuration, fmt::format("{} has no API key of Resend: {}", name, path),
              "write the key alone into it, as Resend shows it once: re_…");
}

}  // namespace mailroom
