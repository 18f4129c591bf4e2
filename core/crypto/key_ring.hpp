// Which key signed a token: the current one, a previous one, or none.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "crypto/key.hpp"
#include "crypto/token.hpp"

namespace mailroom {

/// The current signing key, and previous keys whose tokens are still valid.
struct KeyRing {
  Key current;
  std::vector<Key> previous;
};

/// The facts about a genuine token that follow from the keys alone.
struct GenuineToken {
  Action action;
  std::string code;  ///< the code that matched; empty for an activation
  std::string key_fingerprint;
  bool is_current_key;
};

/// Verifies tokens with a copy of the keys of a ring. Not thread-safe.
class Verifier {
 public:
  explicit Verifier(const KeyRing& ring);

  /// Returns nullopt if no key of the ring signed `token`. A recovery token must match `code`; an activation
  /// token ignores it. Without a code, a recovery token is accepted only with `search_codes`, which tries all
  /// 100,000 codes with each key (about 25 ms per key).
  std::optional<GenuineToken> verify(const DecodedToken& token, std::optional<std::string_view> code,
                                     bool search_codes);

 private:
  struct Signer {
    Hmac hmac;
    std::string fingerprint;
    bool is_current;
  };

  std::vector<Signer> signers_;
};

}  // namespace mailroom
