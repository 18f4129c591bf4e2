// Secrets are compared by their digests, each with each, in constant time.

#include "webhook/secret_verifier.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/secret_file.hpp"
#include "base/text.hpp"
#include "crypto/base64.hpp"
#include "crypto/digest.hpp"

namespace mailroom::webhook {
namespace {

constexpr auto secret_content = "it must have one line, made with: openssl rand -hex 32";

std::string key_of_secrets(std::string_view provider) {
  return fmt::format("bounce.{}_secret_files", provider);
}

/// What follows `scheme` in the header Authorization; empty for another scheme.
std::string_view credentials_of(const process::HttpCall& call, std::string_view scheme) {
  const auto header = trimmed(call.header("authorization"));
  const bool is_scheme = header.size() > scheme.size() && header[scheme.size()] == ' ' &&
                         lower_case(header.substr(0, scheme.size())) == scheme;
  return is_scheme ? trimmed(header.substr(scheme.size())) : std::string_view();
}

void add_login(const process::HttpCall& call, std::vector<std::string>& secrets) {
  const auto bytes = crypto::decoded_base64(credentials_of(call, "basic"));
  if (!bytes || bytes->empty()) return;
  const std::string login(bytes->begin(), bytes->end());
  const auto colon = login.find(':');
  secrets.push_back(login.substr(0, colon));
  if (colon != std::string::npos) secrets.push_back(login.substr(colon + 1));
}

}  // namespace

std::vector<std::string> secrets_in(const process::HttpCall& call) {
  constexpr std::size_t most = 20;
  std::vector<std::string> secrets;
  add_login(call, secrets);
  if (const auto token = credentials_of(call, "bearer"); !token.empty()) secrets.emplace_back(token);
  for (const auto part : split(call.path, '/'))
    if (!part.empty()) secrets.emplace_back(part);
  for (const auto& [name, value] : call.query)
    secrets.push_back(value);
  if (secrets.size() > most) secrets.resize(most);
  return secrets;
}

std::vector<std::string> read_secrets(std::string_view provider, const std::vector<std::string>& files,
                                      bool allow_readable) {
  constexpr std::size_t shortest = 16;
  constexpr std::size_t longest = 200;
  const auto key = key_of_secrets(provider);
  std::vector<std::string> secrets;
  for (const auto& path : files) {
    const SecretFile file(path, {"secret", key, "", secret_content}, allow_readable);
    const auto secret = file.text();
    const bool fits = secret.size() >= shortest && secret.size() <= longest && is_printable(secret) &&
                      secret.find(' ') == std::string_view::npos;
    if (!fits)
      throw Error(
          ExitCode::configuration,
          fmt::format("the secret in the file {} has not {} to {} printable characters without blanks", path,
                      shortest, longest),
          secret_content);
    secrets.emplace_back(secret);
  }
  return secrets;
}

SecretVerifier::SecretVerifier(const std::map<std::string, std::vector<std::string>, std::less<>>& secrets) {
  for (const auto& [name, texts] : secrets) {
    for (const auto& text : texts)
      add(*bounce::find_provider(name), text);
  }
}

void SecretVerifier::add(const bounce::Provider& provider, std::string_view secret) {
  const auto digest = crypto::sha256({secret});
  for (const auto& entry : entries_) {
    if (entry.provider == &provider || !crypto::equal_in_constant_time(entry.digest, digest)) continue;
    throw Error(ExitCode::configuration,
                fmt::format("{} and {} have the same secret", key_of_secrets(entry.provider->name),
                            key_of_secrets(provider.name)),
                "make one for each: it says whose events are posted");
  }
  entries_.push_back({&provider, digest});
}

const bounce::Provider* SecretVerifier::sender_of(const process::HttpCall& call) const {
  const bounce::Provider* sender = nullptr;
  for (const auto& secret : secrets_in(call)) {
    const auto digest = crypto::sha256({secret});
    for (const auto& entry : entries_) {
      if (crypto::equal_in_constant_time(entry.digest, digest)) sender = entry.provider;
    }
  }
  return sender;
}

}  // namespace mailroom::webhook
