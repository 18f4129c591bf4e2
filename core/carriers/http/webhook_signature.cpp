// HMAC-SHA256 over id, time and body, once for each secret.

#include "carriers/http/webhook_signature.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/secret_file.hpp"
#include "crypto/base64.hpp"

namespace mailroom {
namespace {

constexpr std::string_view prefix = "whsec_";
constexpr std::size_t shortest_secret = 24;
constexpr std::size_t longest_secret = 64;
constexpr auto content = "it must have one line, made with: echo whsec_$(openssl rand -base64 32)";

}  // namespace

WebhookSigner::WebhookSigner(const std::vector<std::string>& files, bool allow_readable) {
  for (const auto& path : files) {
    const SecretFile file(path, {"signing secret", "sink.signing_secret_files", "", content}, allow_readable);
    add(file.text(), path);
  }
}

WebhookSigner::WebhookSigner(const std::vector<std::string>& secrets) {
  for (const auto& secret : secrets)
    add(secret, fmt::format("number {}", secrets_.size() + 1));
}

void WebhookSigner::add(std::string_view secret, const std::string& source) {
  const bool has_prefix = secret.starts_with(prefix);
  const auto bytes = decoded_base64(has_prefix ? secret.substr(prefix.size()) : secret);
  if (!has_prefix || !bytes || bytes->size() < shortest_secret || bytes->size() > longest_secret) {
    throw Error(ExitCode::configuration,
                fmt::format("the signing secret {} is not whsec_ and the base64 of {} to {} bytes", source,
                            shortest_secret, longest_secret),
                content);
  }
  secrets_.emplace_back(std::span(*bytes));
}

std::string WebhookSigner::signature(std::string_view id, std::int64_t timestamp, std::string_view body) {
  std::string header;
  const auto time = std::to_string(timestamp);
  for (auto& secret : secrets_) {
    header += header.empty() ? "v1," : " v1,";
    header += base64(secret.digest({id, ".", time, ".", body}));
  }
  return header;
}

}  // namespace mailroom
