// Tries the quick checks with every key before it searches codes.

#include "crypto/key_ring.hpp"

#include <utility>

namespace mailroom::crypto {

Verifier::Verifier(const KeyRing& ring, std::vector<SignedPath> paths) : paths_(std::move(paths)) {
  signers_.reserve(1 + ring.previous.size());
  signers_.push_back({Hmac(ring.current), ring.current.fingerprint(), true});
  for (const Key& key : ring.previous)
    signers_.push_back({Hmac(key), key.fingerprint(), false});
}

GenuineToken Verifier::genuine(const Signer& signer, const SignedPath& path, std::string code) {
  return {path.path, std::move(code), signer.fingerprint, signer.is_current};
}

std::optional<GenuineToken> Verifier::verify(const DecodedToken& token, std::optional<std::string_view> code,
                                             bool search_codes) {
  for (auto& signer : signers_) {
    for (const auto& path : paths_) {
      if (path.has_code && !code) continue;
      const auto covered = path.has_code ? *code : std::string_view();
      if (is_signed(signer.hmac, token, path.path, covered))
        return genuine(signer, path, std::string(covered));
    }
  }
  if (code || !search_codes) return std::nullopt;
  // Search last, so that a token without a code, of an old key, does not wait for 100,000 codes of the
  // current one.
  for (auto& signer : signers_) {
    for (const auto& path : paths_) {
      if (!path.has_code) continue;
      if (auto found = find_code(signer.hmac, token, path.path))
        return genuine(signer, path, *std::move(found));
    }
  }
  return std::nullopt;
}

}  // namespace mailroom::crypto
