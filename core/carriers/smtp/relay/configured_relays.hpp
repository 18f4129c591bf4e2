// The relays of a path with their logins and options, ready to connect, and the name that this host gives
// them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "carriers/smtp/relay/relay.hpp"
#include "config/relay_path.hpp"

namespace mailroom::smtp {

/// True for a name or an address literal that may stand in EHLO.
bool is_hello_name(std::string_view name);

/// Throws Error(configuration) unless `name` is one.
void check_hello_name(const std::string& name);

/// What is known of this host.
struct HostNames {
  std::string name;                    ///< as gethostname() says it
  std::string canonical;               ///< as the resolver completes it; may be empty
  std::vector<std::string> addresses;  ///< of its interfaces, without loopback ones
};

/// The name of this host for EHLO (RFC 5321, section 4.1.1.1): a full name if there is one, else an address
/// literal such as `[192.0.2.1]`. Pure.
std::string choose_hello_name(const HostNames& host);

/// choose_hello_name() of this host. Asks the resolver only if the host's name has no domain.
std::string own_hello_name();

/// Throws Error(configuration) unless `url` and `options` fit: a user needs a password, EHLO a name, and the
/// CA file must be readable.
void check_relay(const RelayUrl& url, const RelayOptions& options);

/// The relays of a path, in their order, and how to connect to them.
struct ConfiguredRelays {
  std::vector<RelayUrl> relays;
  RelayOptions options;
};

/// Throws Error(configuration) if a relay or a file cannot be used, or a password is missing.
ConfiguredRelays read_relays(const config::RelayPath& path);

}  // namespace mailroom::smtp
