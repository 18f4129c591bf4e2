// The way of mails to their relays: where to, as whom and how. Each profile has one, which is made when the
// configuration is loaded, and a carrier of mails is made from that alone.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "config/rate.hpp"

namespace mailroom::config {

/// One relay that takes mails.
struct RelayTarget {
  std::string scheme;  ///< in lower case; empty if the URL has none
  std::string url;     ///< as it is written, without blanks around it

  bool operator==(const RelayTarget&) const = default;
};

/// The text of send.relay, in which commas separate the relays; an empty text has none. What a URL means, its
/// carrier says. Pure.
std::vector<RelayTarget> parse_relays(std::string_view text);

/// The mails of profiles whose paths are equal leave by one lane. Each member is the target of keys of
/// `send`, and what the table of keys does not say is for every relay, a relay of another path never gets.
struct RelayPath {
  std::vector<RelayTarget> targets;  ///< in the order in which they are tried; empty: no mails are sent
  std::string profile;               ///< the first that names these relays so; empty: the section `send` does

  std::string password_file;
  std::string token_file;     ///< of OAuth 2, for the user of the relay
  std::string token_command;  ///< for the shell
  std::string ca_file;
  bool plaintext_for_tests = false;
  std::string hello_name;  ///< empty: that of this host
  std::string provider;    ///< of mails by SMTP; empty: as the host says; `none`: none
  int connections = 0;
  Milliseconds timeout{};
  std::optional<Rate> rate;               ///< of one sender
  std::vector<std::string> throttled_by;  ///< parts of replies
  bool allows_readable_files = false;     ///< signing.allow_readable_key
  /// What relays of one kind alone know, by the keys that their directory of core/carriers has. Values are
  /// not empty.
  std::map<std::string, std::string, std::less<>> options;

  bool operator==(const RelayPath&) const = default;

  /// The option of `key`; empty for none.
  std::string option(std::string_view key) const;
  /// A key as messages name it: `send.ca_file`, or `profiles.acme.ca_file`.
  std::string name_of(std::string_view key) const;
};

/// `profiles.acme.ca_file` for `send.ca_file`; without a profile the key itself.
std::string name_in_profile(std::string_view profile, std::string_view key);

}  // namespace mailroom::config
