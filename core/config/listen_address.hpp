// How metrics.listen names the place where metrics are served.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mailroom::config {

/// Where to listen: a port of an IP address of this host, or a unix socket.
struct ListenAddress {
  std::string host{};  ///< IPv4 or IPv6, in digits; empty for a unix socket
  int port = 0;        ///< 0: one that is free
  std::string path{};  ///< of a unix socket

  bool operator==(const ListenAddress&) const = default;
  bool is_unix() const { return host.empty(); }
  /// `127.0.0.1:9464`, `[::1]:9464`, `unix:/run/mailroom.sock`.
  std::string text() const;
};

/// The longest path of a unix socket.
constexpr std::size_t longest_socket_path = 107;

/// Reads `127.0.0.1:9464`, `[::1]:9464`, `localhost:9464`, `/run/mailroom.sock` or `unix:/run/mailroom.sock`;
/// nullopt for anything else. The path may be too long.
std::optional<ListenAddress> parse_listen_address(std::string_view text);

}  // namespace mailroom::config
