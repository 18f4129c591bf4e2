// Who posted an event of Resend, by the signature that Svix makes for it.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "carriers/http/webhook.hpp"
#include "process/http_listener.hpp"

namespace mailroom::webhook {

/// Checks the headers svix-id, svix-timestamp and svix-signature over the bytes of the body. For several
/// threads.
class SvixVerifier {
 public:
  /// How far a timestamp may be from now: an older one may be of somebody who has seen the request.
  static constexpr std::chrono::seconds window{300};

  explicit SvixVerifier(http::WebhookSigner secrets) : secrets_(std::move(secrets)) {}

  /// Why the request is not known to be Resend's; empty if it is. `now`: seconds since 1970.
  std::string problem_of(const process::HttpCall& call, std::int64_t now);

 private:
  std::mutex mutex_;
  http::WebhookSigner secrets_;
};

}  // namespace mailroom::webhook
