// The relays of send.relay with their logins and options, ready to connect.
#pragma once

#include <vector>

#include "carriers/smtp/relay.hpp"
#include "config/settings.hpp"

namespace mailroom {

/// The relays that the configuration names, in their order, and how to connect to them.
struct ConfiguredRelays {
  std::vector<RelayUrl> relays;
  RelayOptions options;
};

/// Throws Error(configuration) if send.relay is missing, a relay or a file cannot be used, or a password is
/// missing.
ConfiguredRelays read_relays(const Settings& settings);

}  // namespace mailroom
