// The relays that send.relay names, as URLs without a password.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mailroom {

/// Where a relay listens, and as whom to authenticate.
struct RelayUrl {
  bool implicit_tls = false;  ///< smtps://: TLS from the first byte
  std::string host;           ///< a name, an IPv4 address, or an IPv6 address without brackets
  std::uint16_t port = 25;
  std::string user;  ///< empty: no authentication

  bool operator==(const RelayUrl&) const = default;

  /// `host:port`, `[::1]:25`
  std::string address() const;
  /// True for localhost, 127.0.0.0/8 and ::1, where mail needs no TLS.
  bool is_loopback() const;
};

/// Reads `smtp://user@host:587`, `smtps://host`, or several separated by commas. The port defaults to 25, or
/// to 465 for smtps; the user is percent-decoded. Throws Error(configuration) for anything else, in
/// particular for a password.
std::vector<RelayUrl> parse_relay_urls(std::string_view text);

/// True for a name of letters, digits, hyphens and underscores in labels of at most 63 characters, whose last
/// label is no number.
bool is_host_name(std::string_view text);

}  // namespace mailroom
