// Which key signed a token: the current one, a previous one, or none.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "crypto/key.hpp"
#include "crypto/token.hpp"

namespace mailroom::crypto {

/// The current signing key, and previous keys whose tokens are still valid.
struct KeyRing {
  Key current;
  std::vector<Key> previous;
};

/// What a signature covers besides the secret.
struct SignedPath {
  std::string path;
  bool has_code = false;  ///< and a code
};

/// The facts about a genuine token that follow from the keys alone.
struct GenuineToken {
  std::string path;
  std::string code;  ///< the code that matched; empty for a path without one
  std::string key_fingerprint;
  bool is_current_key;
};

/// Verifies tokens with a copy of the keys of a ring. Not thread-safe.
class Verifier {
 public:
  Verifier(const KeyRing& ring, std::vector<SignedPath> paths);

  /// Returns nullopt if no key of the ring signed `token` with one of the paths. With a path that has a code
  /// it must match `code`; others ignore it. Without a code, such a token is accepted only with
  /// `search_codes`, which tries all 100,000 codes with each key and path (about 25 ms for one).
  std::optional<GenuineToken> verify(const DecodedToken& token, std::optional<std::string_view> code,
                                     bool search_codes);

 private:
  struct Signer {
    Hmac hmac;
    std::string fingerprint;
    bool is_current;
  };

  static GenuineToken genuine(const Signer& signer, const SignedPath& path, std::string code);

  std::vector<SignedPath> paths_;
  std::vector<Signer> signers_;
};

}  // namespace mailroom::crypto
