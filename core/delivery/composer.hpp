// The interface to what makes messages of tokens: a line of several, or the mail of one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "claim/queue_session.hpp"
#include "delivery/carrier.hpp"
#include "delivery/delivery_policy.hpp"
#include "mail/address.hpp"

namespace mailroom::delivery {

/// A message with its tokens.
struct Composed {
  Message message;       ///< without id, attempt and body
  std::string bytes;     ///< the body, which the sink moves into its spool
  std::size_t lane = 0;  ///< the place of the sink's lane by which it leaves
  std::vector<ComposedToken> tokens;
};

/// What the configuration says of a token without an attempt: that it waits, as for a profile that is not
/// configured, or that its mail is not wanted.
struct Withheld {
  fate::Outcome state = fate::Outcome::deferred;  ///< or cancelled
  std::string reason;
};

/// Two compositions of the same tokens in the same batch give the same bytes.
class Composer {
 public:
  /// What add() has made: nothing yet, a message, or the reason why the token cannot or must not be part of
  /// one.
  using Added = std::variant<std::monostate, Composed, mail::Refusal, Withheld>;

  virtual ~Composer() = default;

  /// The tokens that follow are of this batch. Returns how many a message has at most: `limit`, or fewer.
  virtual int begin(const claim::Lease& lease, int limit) = 0;
  /// By which of the sink's lanes the message of `row` leaves, if it has one.
  virtual std::size_t lane_of(const claim::TokenRow& row) const {
    static_cast<void>(row);
    return 0;
  }
  /// `token` is empty if the action has no path. Views in `row` are valid only during the call.
  virtual Added add(const claim::TokenRow& row, std::string_view token, DeliveryHistory history) = 0;
  /// The message that was begun, if there is one.
  virtual std::optional<Composed> finish() = 0;
};

}  // namespace mailroom::delivery
