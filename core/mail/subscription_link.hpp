// The links and addresses by which the reader of a mail unsubscribes from its topic, or chooses topics (RFC
// 2369, RFC 8058).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "crypto/key_ring.hpp"
#include "mail/address.hpp"
#include "mail/bounce_address.hpp"
#include "mail/configured_mail.hpp"

namespace mailroom::mail {

/// What a link of a mail is for.
enum class SubscriptionUse { unsubscribe, preferences };

/// Whose mail a link is of, and what for.
struct SubscriptionLink {
  SubscriptionUse use = SubscriptionUse::unsubscribe;
  std::int64_t token = 0;

  bool operator==(const SubscriptionLink&) const = default;
};

/// The text of a link that a key makes for the mail of a token of the database `home`: a letter, and 128 bits
/// of an HMAC-SHA256 with the number of the token, which they hide. It has no address in it, and does not
/// expire.
std::string subscription_text(const SubscriptionLink& link, std::string_view home, const crypto::Key& key);

/// True for what has the form of such a text.
bool is_subscription_text(std::string_view text);

/// What a text says; nullopt unless one of the keys has made it for this database.
std::optional<SubscriptionLink> read_subscription_text(std::string_view text, std::string_view home,
                                                       const crypto::KeyRing& keys);

/// Makes the links of send.unsubscribe_link, `https://app.example/u/{token}`, and the addresses of
/// send.unsubscribe_mailto, `unsubscribe+{id}@app.example`. Threads may share one.
class SubscriptionLinks {
 public:
  /// Why the pattern of a link cannot be used: it ends with /{token}, and is https but for this host.
  static std::optional<Refusal> problem_of(std::string_view pattern);

  /// `pattern` has no problem_of(), `mailto` none of BounceAddress, or they are empty.
  SubscriptionLinks(std::string pattern, std::string mailto, const crypto::Key& key)
      : pattern_(std::move(pattern)), mailto_(std::move(mailto), key), key_(key) {}

  /// False if a mail of a topic could say no way to unsubscribe.
  bool has_way() const { return has_link() || mailto_.has_pattern(); }
  bool has_link() const { return !pattern_.empty(); }
  /// With has_link().
  std::string link(const SubscriptionLink& link, std::string_view home) const;
  /// List-Unsubscribe, and List-Unsubscribe-Post with a link, for the mail of a token.
  std::vector<ExtraHeader> headers(std::int64_t token, std::string_view home) const;

 private:
  std::string pattern_;
  BounceAddress mailto_;
  crypto::Key key_;
};

}  // namespace mailroom::mail
