// What can be wrong with a broker, in the same words for NATS and RabbitMQ.
#pragma once

#include <string>

#include "base/error.hpp"

namespace mailroom {

/// Why lines cannot be handed over to a broker.
enum class BrokerFault {
  none,
  unreachable,  ///< no connection, or no answer: may pass
  tls,          ///< the server does not offer TLS, or the handshake fails
  certificate,  ///< its certificate is not trusted, has expired, or is for another name
  login,        ///< it does not let the user in
  refused,      ///< it lets the user in, and then refuses what is asked of it
  missing,      ///< the stream, queue or exchange does not exist
};

struct BrokerFailure {
  BrokerFault fault = BrokerFault::none;
  std::string text{};  ///< what the library or the server says; without credentials

  /// True if somebody must change a setting, here or there.
  bool is_lasting() const { return fault != BrokerFault::none && fault != BrokerFault::unreachable; }
};

/// `broker.example:4222 does not let mailroom in: Authorization Violation`
std::string describe_failure(const std::string& server, const BrokerFailure& failure);

/// What to do about it.
std::string hint_for(BrokerFault fault);

}  // namespace mailroom
