#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "crypto/key.hpp"
#include "crypto/token.hpp"

namespace mailroom {

/// The key that signs, and those before it whose tokens are still around.
struct KeyRing {
  Key current;
  std::vector<Key> previous;
};

/// What the keys alone know of a genuine token.
struct Verdict {
  Action action;
  std::string code;  ///< the code that matched; empty for an activation
  std::string key_fingerprint;
  bool is_current_key;
};

/// Judges tokens by the keys of a ring, of which it keeps a copy. Not for two threads at once.
class Verifier {
 public:
  explicit Verifier(const KeyRing& ring);

  /// Nothing when no key of the ring signed `token`. `code` is what came along with it: a recovery token must
  /// match it, an activation token ignores it. Without a code a recovery token is genuine only with
  /// `search_codes`, which tries all 100,000 under each key (some 25 ms a key).
  std::optional<Verdict> verify(const DecodedToken& token, std::optional<std::string_view> code,
                                bool search_codes);

 private:
  struct Signer {
    Hmac hmac;
    std::string fingerprint;
    bool is_current;
  };

  std::optional<Verdict> verify_at_once(const DecodedToken& token, std::optional<std::string_view> code);
  std::optional<Verdict> verify_by_search(const DecodedToken& token);

  std::vector<Signer> signers_;
};

}  // namespace mailroom
