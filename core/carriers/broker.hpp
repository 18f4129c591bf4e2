// A broker, NATS or RabbitMQ: the URL of its cluster, and what can be wrong with it, in the same words for
// both.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "config/server_url.hpp"

namespace mailroom {

/// Reads the value of the setting `key` as parse_server_url() does.
ServerUrl parse_broker_url(std::string_view text, const std::vector<UrlScheme>& schemes,
                           std::string_view key = "sink.to");

/// Throws Error(configuration) if a server is not on this host: lines hold tokens, and go over a network only
/// with TLS.
void require_loopback(const ServerUrl& url, const char* hint);

/// `text` with `{queue}` and `{action}` replaced.
std::string filled_name(std::string_view text, std::string_view queue, std::string_view action);

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
