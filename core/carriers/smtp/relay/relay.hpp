// Where a relay listens, as whom mailroom logs in there, and how it talks to it.
//
// It does not connect (session), does not log in (login), and chooses no relay (delivery/endpoint).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "carriers/smtp/relay/access_token.hpp"
#include "config/server_url.hpp"

namespace mailroom::smtp {

/// Where a relay listens, and as whom to authenticate.
struct RelayUrl : config::ServerAddress {
  bool implicit_tls = false;  ///< smtps://: TLS from the first byte
  std::string user{};         ///< empty: no authentication
  std::string profile{};      ///< whose relay it is; empty: that of send.relay

  bool operator==(const RelayUrl&) const = default;

  /// `relay.example:25`, or `relay.example:25 (acme)`: two profiles may log in there as different users.
  std::string name() const { return profile.empty() ? address() : address() + " (" + profile + ")"; }
};

/// Reads `smtp://user@host:587` or `smtps://host`. The port defaults to 25, or to 465 for smtps. Throws
/// Error(configuration) as parse_server_url() does.
RelayUrl parse_relay_url(std::string_view text);

struct RelayOptions {
  std::string password;                   ///< for a relay whose URL names a user
  std::shared_ptr<TokenSource> tokens{};  ///< of that user, instead of a password
  std::string ca_file;     ///< PEM file of the only trusted certificates; empty: those of the system
  std::string hello_name;  ///< in EHLO, exactly so; empty: own_hello_name()
  /// For opening a connection, and for the reply to each command; 1 s or more, and exact to a second.
  Milliseconds timeout{30'000};
  /// For the reply to the end of the message, if longer than `timeout`. RFC 5321 asks for 10 minutes: a relay
  /// that is given up while it stores the mail delivers it, and the next attempt delivers it again.
  Milliseconds end_timeout{120'000};
  /// A connection that was idle for so long may be gone without notice, as some networks forget it.
  Milliseconds rest_time{1000};
  /// For the first reply over such a connection; then the mail goes over a fresh one.
  Milliseconds rested_timeout{3000};
  std::vector<std::string> resolve;       ///< `HOST:PORT:ADDRESS,...` instead of the system's addresses
  bool tls_on_loopback = false;           ///< require TLS of a loopback relay without a user too
  bool plaintext_for_tests = false;       ///< no TLS of a relay without a user, wherever it is
  std::vector<std::string> throttled_by;  ///< texts of replies that ask for a lower rate: `421 4.7.28`
  std::string provider{};                 ///< RelayPath::provider
};

/// True if `url` takes mail over TLS only.
bool requires_tls(const RelayUrl& url, const RelayOptions& options);

}  // namespace mailroom::smtp
