// The canonical request, the text that is signed, and a key for day, region and service.

#include "carriers/ses/signature.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <map>
#include <span>

#include "base/encoded_text.hpp"
#include "base/text.hpp"
#include "crypto/digest.hpp"
#include "crypto/hmac.hpp"

namespace mailroom::ses {
namespace {

constexpr auto algorithm = "AWS4-HMAC-SHA256";

crypto::Digest hmac_of(std::span<const std::uint8_t> key, std::string_view text) {
  return crypto::Hmac(key).digest({text});
}

/// `20261125T103000Z`
std::string stamp_of(std::int64_t now) {
  return fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(static_cast<std::time_t>(now)));
}

/// Without blanks around it, and with one blank for several.
std::string collapsed(std::string_view value) {
  std::string text;
  for (const char c : trimmed(value)) {
    if (c != ' ' || !text.ends_with(' ')) text += c;
  }
  return text;
}

crypto::Digest signing_key(const std::string& secret, std::string_view day, const AwsScope& scope) {
  const auto first = "AWS4" + secret;
  const std::vector<std::uint8_t> bytes(first.begin(), first.end());
  auto key = hmac_of(bytes, day);
  for (const std::string_view part :
       {std::string_view(scope.region), std::string_view(scope.service), std::string_view("aws4_request")})
    key = hmac_of(key, part);
  return key;
}

}  // namespace

std::vector<std::string> signed_headers(const AwsRequest& request, const AwsCredentials& credentials,
                                        const AwsScope& scope, std::int64_t now) {
  const auto stamp = stamp_of(now);
  const auto day = stamp.substr(0, 8);
  std::map<std::string, std::string> headers{{"host", request.host}, {"x-amz-date", stamp}};
  if (!request.content_type.empty()) headers["content-type"] = request.content_type;
  if (!request.target.empty()) headers["x-amz-target"] = request.target;
  if (!credentials.session_token.empty()) headers["x-amz-security-token"] = credentials.session_token;
  std::vector<std::string> lines;
  std::string canonical;
  std::string names;
  for (const auto& [name, value] : headers) {
    lines.push_back(fmt::format("{}: {}", name, value));
    canonical += fmt::format("{}:{}\n", name, collapsed(value));
    names += (names.empty() ? "" : ";") + name;
  }
  // The path is encoded once more than it is sent.
  const auto text =
      fmt::format("{}\n{}\n\n{}\n{}\n{}", request.method, percent_encoded(request.path, "-._~/"), canonical,
                  names, hex_text(crypto::sha256({request.body})));
  const auto place = fmt::format("{}/{}/{}/aws4_request", day, scope.region, scope.service);
  const auto to_sign =
      fmt::format("{}\n{}\n{}\n{}", algorithm, stamp, place, hex_text(crypto::sha256({text})));
  const auto signature = hex_text(hmac_of(signing_key(credentials.secret, day, scope), to_sign));
  lines.push_back(fmt::format("authorization: {} Credential={}/{}, SignedHeaders={}, Signature={}", algorithm,
                              credentials.key_id, place, names, signature));
  return lines;
}

}  // namespace mailroom::ses
