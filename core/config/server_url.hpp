// The URL of a server, or of several of one kind, as settings have it: with a user, and without a password.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mailroom::config {

/// A part of a URL without its encoding; nullopt for what is no encoding, or not printable.
std::optional<std::string> percent_decoded(std::string_view text);

/// Where a server listens.
struct ServerAddress {
  std::string host{};  ///< a name, an IPv4 address, or an IPv6 address without brackets
  std::uint16_t port = 0;

  bool operator==(const ServerAddress&) const = default;

  /// `host:port`, `[::1]:25`
  std::string address() const;
  /// True for localhost, 127.0.0.0/8 and ::1, where tokens need no TLS.
  bool is_loopback() const;
};

/// Servers, and as whom to authenticate.
struct ServerUrl {
  std::string scheme{};  ///< in lower case: `nats`
  std::string user{};    ///< empty: none
  std::vector<ServerAddress> servers{};
  std::string path{};  ///< what follows the servers and a slash

  /// The addresses of all servers, separated by commas.
  std::string addresses() const;
};

/// A scheme, and the port of its servers that have none in the URL.
struct UrlScheme {
  std::string_view name;
  std::uint16_t port;
};

/// What a URL may be, and what errors say.
struct UrlForm {
  std::string_view subject;  ///< what has the URL: `sink.to`
  std::vector<UrlScheme> schemes;
  std::string_view password_key;  ///< the setting that names the file of its password
  std::string hint{};             ///< how to write it; empty: as for a cluster
  bool has_path = true;
};

/// Reads `nats://user@host:4222,host2,host3/path`; each server may repeat the scheme. User and path are
/// percent-decoded. Throws Error(configuration), which shows nothing that may be a password, for anything
/// else, in particular for a password.
ServerUrl parse_server_url(std::string_view text, const UrlForm& form);

/// True for a name of letters, digits, hyphens and underscores in labels of at most 63 characters, whose last
/// label is no number.
bool is_host_name(std::string_view text);

}  // namespace mailroom::config
