// The URL of a cluster, as sink.to and sink.monitor have it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mailroom {

/// One server of a broker.
struct BrokerServer {
  std::string host{};  ///< a name, an IPv4 address, or an IPv6 address without brackets
  std::uint16_t port = 0;

  bool operator==(const BrokerServer&) const = default;

  /// `host:port`, `[::1]:4222`
  std::string address() const;
  /// True for localhost, 127.0.0.0/8 and ::1, where lines need no TLS.
  bool is_loopback() const;
};

/// The servers of a cluster, and as whom to authenticate.
struct BrokerUrl {
  std::string scheme;  ///< in lower case: `nats`
  std::string user;    ///< empty: none
  std::vector<BrokerServer> servers;
  std::string path;  ///< what follows the servers and a slash

  /// The addresses of all servers, separated by commas.
  std::string addresses() const;
};

/// A scheme, and the port of its servers that have none in the URL.
struct BrokerScheme {
  std::string_view name;
  std::uint16_t port;
};

/// Reads `nats://user@host:4222,host2,host3/path`; each server may repeat the scheme. User and path are
/// percent-decoded. Throws Error(configuration), which names the setting `key`, for anything else, in
/// particular for a password.
BrokerUrl parse_broker_url(std::string_view text, const std::vector<BrokerScheme>& schemes,
                           std::string_view key = "sink.to");

/// Throws Error(configuration) if a server is not on this host: lines hold tokens, and go over a network only
/// with TLS.
void require_loopback(const BrokerUrl& url, const char* hint);

/// `text` with `{queue}` and `{action}` replaced.
std::string filled_name(std::string_view text, std::string_view queue, std::string_view action);

}  // namespace mailroom
