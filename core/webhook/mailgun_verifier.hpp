// Who posted an event of Mailgun, by the signature beside it, which is over a time and a token only.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "crypto/hmac.hpp"

namespace mailroom::webhook {

/// True for a body that has a signature beside its event, whoever made it.
bool has_mailgun_signature(std::string_view body);

/// For several threads.
class MailgunVerifier {
 public:
  /// How far a timestamp may be from now, when its token comes for the first time.
  static constexpr std::chrono::minutes window{20};
  /// For how long a token comes again: Mailgun repeats what was not taken for eight hours, and others say
  /// that it signs it once.
  static constexpr std::chrono::hours memory{9};
  static constexpr std::size_t most_kept = 50'000;

  /// `keys`: the signing keys for webhooks of the account, or of its parent.
  explicit MailgunVerifier(const std::vector<std::string>& keys);

  /// Why the body is not known to be Mailgun's; empty if it is. `now`: seconds since 1970. The signature does
  /// not cover the event, so a token is good for the one that it came with first.
  std::string problem_of(std::string_view body, std::int64_t now);

 private:
  struct Use {
    crypto::Digest event;
    std::int64_t at = 0;
  };
  bool has_signed(std::string_view timestamp, std::string_view token, const nlohmann::json& signature);
  std::string use(const std::string& token, const crypto::Digest& event, std::int64_t timestamp,
                  std::int64_t now);
  void forget_old(std::int64_t now);

  std::mutex mutex_;
  std::vector<crypto::Hmac> keys_;
  std::map<std::string, Use, std::less<>> uses_;
  std::deque<std::string> order_;  ///< of their first use
};

}  // namespace mailroom::webhook
