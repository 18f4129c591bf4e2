// Paths of mails that a test makes from the text of send.relay, and how their parts are shown.
#pragma once

#include <fmt/format.h>
#include <string>
#include <variant>
#include <vector>

#include "base/text.hpp"
#include "carriers/relay_series.hpp"
#include "carriers/smtp/relay/relay.hpp"
#include "config/settings.hpp"
#include "mail/configured_mail.hpp"

namespace mailroom::test {

/// With the defaults of the configuration.
inline config::RelayPath path_of(const std::string& relays) {
  auto path = config::load_settings({}, {}, config::FileUse::ignored).send.path;
  path.targets = config::parse_relays(relays);
  return path;
}

/// Mails with this sender.
inline mail::ConfiguredMail mail_from(const std::string& sender) {
  mail::ConfiguredMail mail{};
  mail.from = std::get<mail::Mailbox>(mail::parse_mailbox(sender));
  return mail;
}

/// Of a list whose relays are all of SMTP.
inline std::vector<smtp::RelayUrl> relay_urls(const std::string& relays) {
  std::vector<smtp::RelayUrl> urls;
  for (const auto& target : config::parse_relays(relays))
    urls.push_back(smtp::parse_relay_url(target.url));
  return urls;
}

/// `ses: ses://eu-west-1 | smtp: smtp://a smtp://b`
inline std::string shown_groups(const std::string& relays) {
  std::vector<std::string> groups;
  for (const auto& group : carriers::relay_groups(path_of(relays))) {
    std::vector<std::string> urls;
    for (const auto& target : group.path.targets)
      urls.push_back(target.url);
    groups.push_back(fmt::format("{}: {}", group.kind->name, joined(urls)));
  }
  return joined(groups, " | ");
}

}  // namespace mailroom::test
