// The relays that send.relay names, as URLs without a password.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/server_url.hpp"

namespace mailroom {

/// Where a relay listens, and as whom to authenticate.
struct RelayUrl : ServerAddress {
  bool implicit_tls = false;  ///< smtps://: TLS from the first byte
  std::string user{};         ///< empty: no authentication

  bool operator==(const RelayUrl&) const = default;
};

/// Reads `smtp://user@host:587`, `smtps://host`, or several separated by commas. The port defaults to 25, or
/// to 465 for smtps. Throws Error(configuration) as parse_server_url() does.
std::vector<RelayUrl> parse_relay_urls(std::string_view text);

}  // namespace mailroom
