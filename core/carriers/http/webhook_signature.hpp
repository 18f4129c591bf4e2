// Shows the receiver of a webhook that mailroom has sent it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "crypto/hmac.hpp"

namespace mailroom {

/// Signs requests by the conventions of Standard Webhooks, with one secret or with several while one is
/// replaced.
class WebhookSigner {
 public:
  /// Reads each file: `whsec_` and the base64 of 24 to 64 bytes. Throws Error(configuration).
  WebhookSigner(const std::vector<std::string>& files, bool allow_readable);
  /// Takes the secrets themselves. Throws Error(configuration) that names the place of a wrong one, but not
  /// the secret.
  explicit WebhookSigner(const std::vector<std::string>& secrets);

  bool signs() const { return !secrets_.empty(); }
  /// The header webhook-signature: `v1,BASE64` for each secret, separated by blanks.
  std::string signature(std::string_view id, std::int64_t timestamp, std::string_view body);

 private:
  void add(std::string_view secret, const std::string& source);

  std::vector<Hmac> secrets_;
};

}  // namespace mailroom
