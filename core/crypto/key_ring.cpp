// Tries the quick checks with every key before it searches the codes of a recovery.

#include "crypto/key_ring.hpp"

namespace mailroom {

Verifier::Verifier(const KeyRing& ring) {
  signers_.reserve(1 + ring.previous.size());
  signers_.push_back({Hmac(ring.current), ring.current.fingerprint(), true});
  for (const Key& key : ring.previous)
    signers_.push_back({Hmac(key), key.fingerprint(), false});
}

std::optional<GenuineToken> Verifier::verify(const DecodedToken& token, std::optional<std::string_view> code,
                                             bool search_codes) {
  for (auto& signer : signers_) {
    if (is_signed_for_activation(signer.hmac, token)) {
      return GenuineToken{Action::activation, {}, signer.fingerprint, signer.is_current};
    }
    if (code && is_signed_for_recovery(signer.hmac, token, *code)) {
      return GenuineToken{Action::password_recovery, std::string(*code), signer.fingerprint,
                          signer.is_current};
    }
  }
  if (code || !search_codes) return std::nullopt;
  // Search last, so that an activation token of an old key does not wait for 100,000 codes of the current
  // key.
  for (auto& signer : signers_) {
    if (auto found = find_recovery_code(signer.hmac, token)) {
      return GenuineToken{Action::password_recovery, std::move(*found), signer.fingerprint,
                          signer.is_current};
    }
  }
  return std::nullopt;
}

}  // namespace mailroom
