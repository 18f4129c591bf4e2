// The envelope sender of a mail, to which bounces come back, with an id that only this installation can make.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "crypto/key_ring.hpp"
#include "mail/address.hpp"

namespace mailroom::mail {

/// The token whose mail has this bounce id: `42-k3x9q2mh7d`, in letters of any case. nullopt unless one of
/// the keys has made it for this database: the id carries 50 bits of an HMAC-SHA256 over the token and `home`
/// (mailroom_home_name()), so that nobody can suppress an address by mailing bounces with ids that he
/// guessed, or has of another database with the same key.
std::optional<std::int64_t> token_of_bounce_id(std::string_view id, std::string_view home,
                                               const crypto::KeyRing& keys);

/// Makes the ids of copies, and the envelope senders of send.bounce_address: `bounce+{id}@app.example`.
/// Threads may share one.
class BounceAddress {
 public:
  /// `pattern`: an address whose part before the @ has {id} once. Returns why it cannot be used.
  static std::optional<Refusal> problem_of(std::string_view pattern);

  /// `pattern` has no problem_of(), or is empty: the copies have ids, and no envelope senders of their own.
  BounceAddress(std::string pattern, const crypto::Key& key);

  /// What stands for {id} in the address for the mail of a token of the database `home`.
  std::string id_of(std::int64_t token, std::string_view home) const;
  bool has_pattern() const { return !pattern_.empty(); }
  /// With a pattern.
  std::string address_with(std::string_view id) const;

 private:
  struct Signer;

  std::string pattern_;
  std::shared_ptr<Signer> signer_;  ///< of this and its copies
};

/// The id in `address`, if it is one that `pattern` makes; else empty.
std::string bounce_id_in(std::string_view address, std::string_view pattern);

}  // namespace mailroom::mail
