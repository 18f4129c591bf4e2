// Who posted events of SendGrid, by the signature in the headers over the time and the body.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "process/http_listener.hpp"

namespace mailroom::webhook {

/// Checks ECDSA over P-256. For several threads.
class SendGridVerifier {
 public:
  /// How far a timestamp may be from now. The body is signed, so that what comes again within it is known.
  static constexpr std::chrono::minutes window{20};

  static constexpr auto signature_header = "x-twilio-email-event-webhook-signature";

  /// `keys`: the verification key of each webhook, in base64 as SendGrid shows it, or in PEM. Throws
  /// Error(configuration) for what is none; `named_by` says where they come from.
  SendGridVerifier(const std::vector<std::string>& keys, const std::string& named_by);

  /// Why the request is not known to be SendGrid's; empty if it is. `now`: seconds since 1970.
  std::string problem_of(const process::HttpCall& call, std::int64_t now) const;

 private:
  std::vector<std::vector<std::uint8_t>> keys_;  ///< in DER
};

}  // namespace mailroom::webhook
