// Who posted an event of a provider that signs nothing, by the secret in the URL or in the login that the
// provider was told.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bounce/provider.hpp"
#include "crypto/hmac.hpp"
#include "process/http_listener.hpp"

namespace mailroom::webhook {

/// What of a request may be a secret: user and password of a login (RFC 7617), a bearer token (RFC 6750), the
/// last part of the path, and the values of the query.
std::vector<std::string> secrets_in(const process::HttpCall& call);

/// The secrets of bounce.NAME_secret_files. Each file has one line of 16 to 200 printable characters without
/// blanks. Throws Error(configuration).
std::vector<std::string> read_secrets(std::string_view provider, const std::vector<std::string>& files,
                                      bool allow_readable);

/// For several threads.
class SecretVerifier {
 public:
  /// `secrets`: of each provider, by its name. Throws Error(configuration) if two providers have one: whose
  /// events are posted, the secret says.
  explicit SecretVerifier(const std::map<std::string, std::vector<std::string>, std::less<>>& secrets);

  /// Who posted; null if the request has none of the secrets. Takes the same time whichever it has.
  const bounce::Provider* sender_of(const process::HttpCall& call) const;

 private:
  struct Entry {
    const bounce::Provider* provider;
    crypto::Digest digest;
  };
  void add(const bounce::Provider& provider, std::string_view secret);

  std::vector<Entry> entries_;
};

}  // namespace mailroom::webhook
